"""What every stage of a run has to do, in seconds of a core, from sizes, settings and rates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

from spark_rank.config.schema import Config, LearnerConfig, PrepareConfig
from spark_rank.features.factor_model import most_users
from spark_rank.learners import BASELINES, learner_class
from spark_rank.planning.rates import LEARNERS, LearnerCost, learner_cost, rate
from spark_rank.planning.sizes import Sizes, training_share

# vectors that come with the data tell their width only when they are read
GIVEN_WIDTH = 100
_DEFAULT_ROUNDS = 100


@dataclass(frozen=True)
class Work:
    """Seconds of a core that executors spend, and seconds of the driver's cores."""

    executors: float = 0.0
    driver: float = 0.0


def width(config: Config) -> int:
    """Return the number of features that learners see."""
    settings = config.features
    widths = {"factors": settings.rank, "panel": settings.panel_size,
              "reference": settings.reference_size, "given": GIVEN_WIDTH, "offset": 0}  # fmt: skip
    return widths[settings.kind]


def stage_work(stage: str, config: Config, sizes: Sizes) -> Work:
    """Return what a stage has to do; nothing where nobody has measured it."""
    made = _WORK.get(stage)
    return Work() if made is None else made(config, sizes)


def labels(config: Config) -> int:
    """Return how many learners have a row for every user, baselines too."""
    return len(config.train.learners) + (len(BASELINES) if config.train.baselines else 0)


def is_kernel(entry: LearnerConfig) -> bool:
    """Tell whether a learner has another kernel than the linear one, or may choose one."""
    kernels = entry.grid.get("kernel", [entry.params.get("kernel", "linear")])
    return any(kernel != "linear" for kernel in kernels)


def learner_seconds(entry: LearnerConfig, config: Config, m: float) -> float:
    """Return the time to learn and measure one user's model from m training ratings."""
    once = _fit_seconds(entry, config, m)
    if not entry.grid or entry.selection == "sample":
        return once
    return once + _choice_seconds(entry, config, m)


def user_seconds(config: Config, m: float) -> float:
    """Return the time for one user of m training ratings: all learners, and what is written."""
    own = sum(learner_seconds(entry, config, m) for entry in config.train.learners)
    if config.train.baselines:
        own += LEARNERS["baselines", True].seconds(m, width(config))
    return rate("model row") * labels(config) + own


def _fit_seconds(entry: LearnerConfig, config: Config, m: float) -> float:
    d, settings = width(config), config.train
    cost = learner_cost(entry.learner, not is_kernel(entry))
    params = entry.params
    repeats = params.get("epochs", 1) * params.get("n_rounds", _DEFAULT_ROUNDS) / _DEFAULT_ROUNDS
    if not is_kernel(entry) or m <= settings.max_kernel_ratings:
        return cost.seconds(m, d) * repeats
    if entry.learner == "prank":  # learns from the first so many
        return cost.seconds(settings.max_kernel_ratings, d) * repeats
    return _landmark_seconds(cost, entry, m, d, min(settings.landmarks, m)) * repeats


def _landmark_seconds(
    cost: LearnerCost, entry: LearnerConfig, m: float, d: float, landmarks: float
) -> float:
    linear = learner_cost(entry.learner, True).seconds(m, landmarks)
    return linear + m * landmarks * (cost.mm + cost.mmd * d)


def _choice_seconds(entry: LearnerConfig, config: Config, m: float) -> float:
    """Return the time to try all points of a learner's grid on one user."""
    points = math.prod(len(values) for values in entry.grid.values())
    exact = learner_class(entry.learner).exact_leave_pair_out and entry.selection != "k_fold"
    if exact and m <= config.train.max_kernel_ratings:
        return _leave_pair_out_seconds(is_kernel(entry), points, len(entry.grid.get("C", [1])), m)
    folds = config.train.folds
    return points * folds * _fit_seconds(entry, config, m * (folds - 1) / folds)


def _leave_pair_out_seconds(kernel: bool, points: int, strengths: int, m: float) -> float:
    """Return the time of the exact error of all points; values of C share a factorisation."""
    kind, power = ("kernel", 3) if kernel else ("linear", 2)
    each = rate(f"choice {kind}") + strengths * rate(f"choice {kind} C")
    return points / strengths * (rate("choice") + each * m**power)


def _synthesize(config: Config, sizes: Sizes) -> Work:
    made = sizes.ratings * rate("synthesize rating")
    return Work(sizes.users * sizes.items * rate("synthesize") + made)


def _ingest(config: Config, sizes: Sizes) -> Work:
    made = config.input if config.input.path is not None else config.synthesize
    known = "ingest netflix" if made.format == "netflix" else "ingest"
    return Work(sizes.ratings * rate(known))


def _prepare(config: Config, sizes: Sizes) -> Work:
    return Work(sizes.ratings * rate("prepare"))


def sampled(config: Config, sizes: Sizes) -> tuple[float, float]:
    """Return about how many ratings and users factors are learned from."""
    settings = config.features
    train = sizes.ratings * training_share(config.prepare, sizes)
    most = most_users(settings.rank) / sizes.users
    share = min(settings.user_share, settings.max_ratings / max(train, 1.0), most)
    return share * train, share * sizes.users


def moments(config: Config) -> int:
    """Return how many second moments a vector of factors has."""
    return (config.features.rank + 1) * (config.features.rank + 2) // 2


def _features(config: Config, sizes: Sizes) -> Work:
    settings = config.features
    if settings.kind != "factors":
        return Work(sizes.ratings * rate("reviewers") if settings.kind != "given" else 0.0)
    if settings.kept_from is not None:
        return Work()
    # all blocks are read to find the sample
    return Work(sizes.ratings * rate("reviewers"), _factor_seconds(config, sizes))


def _factor_seconds(config: Config, sizes: Sizes) -> float:
    """Return the time to learn the factor model."""
    settings = config.features
    ratings, users = sampled(config, sizes)
    cube = (settings.rank + 1) ** 3
    each = ratings * moments(config) * rate("factors")
    each += (users + sizes.items) * cube * rate("factors solve")
    return settings.rounds * each


def _targets(config: Config, sizes: Sizes) -> list[tuple[float, float]]:
    """Return the users to learn, in groups: how many, and their training ratings."""
    least, most = config.train.targets_min or 0, config.train.targets_max or math.inf
    share = training_share(config.prepare, sizes)
    return [(n, size * share) for n, size in sizes.groups if least <= size <= most]


def _train(config: Config, sizes: Sizes) -> Work:
    return Work(sum(n * user_seconds(config, m) for n, m in _targets(config, sizes)))


def _tune(config: Config, sizes: Sizes) -> Work:
    entries = [entry for entry in config.train.learners if entry.grid]
    if not entries:
        return Work()
    groups = _targets(config, sizes)
    users = sum(n for n, _ in groups) or 1.0
    share = min(1.0, config.tune.users / users)
    each = sum(share * n * _tried_seconds(e, config, m) for (n, m), e in product(groups, entries))
    # features are made once more, without what is held back
    again = _factor_seconds(config, sizes) if config.features.kind == "factors" else 0.0
    return Work(sizes.ratings * rate("reviewers") + each, again)


def _tried_seconds(entry: LearnerConfig, config: Config, m: float) -> float:
    """Return the time to try all points on what one user has held back, and by the own errors."""
    points = math.prod(len(values) for values in entry.grid.values())
    folds = config.train.folds
    once = points * _fit_seconds(entry, config, m * (folds - 1) / folds)
    return once if entry.selection == "sample" else once + _choice_seconds(entry, config, m)


def _evaluate(config: Config, sizes: Sizes) -> Work:
    held_out = sizes.ratings * (1.0 - training_share(config.prepare, sizes))
    each = sizes.users * rate("evaluate") + held_out * rate("evaluate rating")
    return Work(each * labels(config))


def _rank(config: Config, sizes: Sizes) -> Work:
    held_out = sizes.ratings * (1.0 - training_share(config.prepare, sizes))
    return Work(sizes.users * rate("rank") + held_out * rate("rank rating"))


def _aggregate(config: Config, sizes: Sizes) -> Work:
    return Work(sizes.ratings * rate("aggregate"))


def _recommend(config: Config, sizes: Sizes) -> Work:
    entry = scoring(config)
    d = width(config) + 1
    seconds = sizes.users * (rate("recommend") + sizes.items * d * rate("recommend score"))
    if is_kernel(entry):
        train = sizes.ratings * training_share(config.prepare, sizes)
        seconds += train * sizes.items * d * rate("recommend kernel")
    return Work(seconds)


def refit_config(config: Config) -> Config:
    """Return the configuration by which `refit` learns: one learner, nothing held out."""
    nothing_held_out = PrepareConfig(train_share=1.0, buckets=config.prepare.buckets)
    entry = scoring(config)
    learners = [] if entry.learner in BASELINES else [entry]
    training = replace(config.train, learners=learners)
    return replace(config, prepare=nothing_held_out, train=training)


def _refit(config: Config, sizes: Sizes) -> Work:
    if training_share(config.prepare, sizes) == 1.0:
        return Work()
    again = refit_config(config)
    features, models = _features(again, sizes), _train(again, sizes)
    return Work(features.executors + models.executors, features.driver + models.driver)


def scoring(config: Config) -> LearnerConfig:
    """Return the learner whose models make lists; the first where an ensemble does."""
    if config.recommend.learner in BASELINES:
        return LearnerConfig(learner=config.recommend.learner)
    entries = config.train.learners
    return next((e for e in entries if e.label == config.recommend.learner), entries[0])


def _ensemble(config: Config, sizes: Sizes) -> Work:
    cost, d = LEARNERS["prank", True], width(config)
    members = sum(entry.n_members for entry in config.ensemble.learners)
    groups = _targets(config, sizes)
    rows = rate("ensemble row") * len(config.ensemble.learners)
    return Work(sum(n * (rows + members * cost.seconds(m, d)) for n, m in groups))


_WORK = {
    "synthesize": _synthesize, "ingest": _ingest, "prepare": _prepare, "features": _features,
    "tune": _tune, "train": _train, "ensemble": _ensemble, "evaluate": _evaluate, "rank": _rank,
    "aggregate": _aggregate, "refit": _refit, "recommend": _recommend,
}  # fmt: skip
PLANNED = frozenset(_WORK)
