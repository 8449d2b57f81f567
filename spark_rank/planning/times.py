"""The time that stages take: usual costs per rating and user, and the range around them.

Costs are seconds of one core of a server, measured by ``benchmarks/plan.py`` and
``benchmarks/scale.py``; each learner declares its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from spark_rank.config.schema import Config, LearnerConfig
from spark_rank.features.factor_model import most_users
from spark_rank.learners import BASELINES
from spark_rank.learners.costs import kernel_of, model_cost
from spark_rank.planning.sizes import Sizes, training_share

SESSION, _STAGE = 4.0, 2.0
# per rating and per user, by stage; for train and evaluate, also per learner
_RATING = {
    "synthesize": 8e-6, "ingest": 3.2e-6, "prepare": 0.9e-6, "features": 2.4e-7, "tune": 2.4e-7,
    "evaluate": 1e-7, "rank": 2e-7, "aggregate": 2e-7, "refit": 2.4e-7,
}  # fmt: skip
_USER = {"train": 1.4e-5, "evaluate": 1.25e-5, "rank": 5e-6, "recommend": 4e-5}
# of a list: per user, item and feature; with a kernel, also per rating, item and feature
_PRODUCT, _KERNEL = 2.5e-11, 1e-10
# of the factor model, per round: a second moment of a rating, a solved system per rank cubed
_MOMENT, _SOLVE = 0.8e-9, 3.3e-10
# of ALS, per round: a product of two factors of a rating
_PRODUCT_SUM = 2e-9
_LEARNING = ("tune", "train", "ensemble", "refit")
PLANNED = frozenset((*_RATING, *_USER, *_LEARNING))


class Work(NamedTuple):
    """Seconds of one core, on the executors and on the driver."""

    executors: float
    driver: float


class Range(NamedTuple):
    """A range of seconds."""

    low: float
    high: float


def stage_range(stage: str, config: Config, seconds: float) -> Range:
    """Return the range around an estimate, wider with kernels and grids."""
    learns = stage in (*_LEARNING, "recommend")
    uncertain = learns and any(e.grid or kernel_of(e) != "linear" for e in config.train.learners)
    factor = 4.0 if uncertain else 2.0
    return Range((_STAGE + seconds) / factor, (_STAGE + seconds) * factor)


def measured_range(seconds: float, ratio: float) -> Range:
    """Return the range for `ratio` times the work per core of a run that took these seconds."""
    start = min(_STAGE, seconds)
    scaled = start + (seconds - start) * ratio
    return Range(scaled / 1.5, scaled * 1.5)


def stage_work(stage: str, config: Config, sizes: Sizes) -> Work:
    """Return the work of a stage; 0 for a stage without measured costs."""
    each = labels(config) if stage in ("train", "evaluate") else 1
    seconds = each * (sizes.ratings * _RATING.get(stage, 0.0) + sizes.users * _USER.get(stage, 0.0))
    if stage == "recommend":
        products = sizes.items * (config.features.width + 1)
        kernel = kernel_of(scoring(config)) != "linear"
        seconds += products * (sizes.users * _PRODUCT + kernel * sizes.ratings * _KERNEL)
    learned = sum(_model_cost(entry, config, sizes) for entry in _learners(stage, config))
    users = min(config.tune.users, sizes.users) if stage == "tune" else sizes.users
    seconds += _als_cost(stage, config, sizes)
    driver = _factor_cost(config, sizes) if makes_factors(stage, config) else 0.0
    return Work(seconds + users * learned, driver)


def makes_factors(stage: str, config: Config) -> bool:
    """Tell whether the driver learns the factor model in a stage."""
    return config.features.kind == "factors" and _learns_features(stage, config)


def _learns_features(stage: str, config: Config) -> bool:
    grids = any(entry.grid for entry in config.train.learners)
    learns = stage in ("features", "refit") or (stage == "tune" and grids)
    return learns and config.features.kept_from is None


def scoring(config: Config) -> LearnerConfig:
    """Return the learner whose models make lists; the first one if an ensemble makes them."""
    if config.recommend.learner in BASELINES:
        return LearnerConfig(learner=config.recommend.learner)
    entries = config.train.learners
    return next((e for e in entries if e.label == config.recommend.learner), entries[0])


def labels(config: Config) -> int:
    """Return how many learners have a row per user, baselines included."""
    return len(config.train.learners) + (len(BASELINES) if config.train.baselines else 0)


def sampled(config: Config, sizes: Sizes) -> tuple[float, float, int]:
    """Return about how many ratings and users factors are learned from, and moments per user."""
    settings = config.features
    most = most_users(settings.rank) / sizes.users
    share = min(settings.user_share, settings.max_ratings / sizes.ratings, most)
    return (
        share * sizes.ratings,
        share * sizes.users,
        (settings.rank + 1) * (settings.rank + 2) // 2,
    )


def _factor_cost(config: Config, sizes: Sizes) -> float:
    ratings, users, moments = sampled(config, sizes)
    solved = (users + sizes.items) * (config.features.rank + 1) ** 3
    return config.features.rounds * (ratings * moments * _MOMENT + solved * _SOLVE)


def _als_cost(stage: str, config: Config, sizes: Sizes) -> float:
    """Return the seconds of one core that ALS takes on the executors, for users and items."""
    settings = config.features
    if settings.kind != "als" or not _learns_features(stage, config):
        return 0.0
    squares = 2 * settings.user_share * sizes.ratings * settings.rank * (settings.rank + 1) / 2
    solved = (settings.user_share * sizes.users + sizes.items) * settings.rank**3
    return settings.als_rounds * (squares * _PRODUCT_SUM + solved * _SOLVE)


def _learners(stage: str, config: Config) -> list[LearnerConfig]:
    """Return the learners that a stage learns per user; for tune, once per fold."""
    entries = config.train.learners
    if stage == "tune":
        with_grid = [replace(entry, selection="k_fold") for entry in entries if entry.grid]
        return config.train.folds * with_grid
    if stage == "ensemble":
        return sum(entry.n_members for entry in config.ensemble.learners) * [LearnerConfig("prank")]
    return {"train": entries, "refit": [scoring(config)]}.get(stage, [])


def _model_cost(entry: LearnerConfig, config: Config, sizes: Sizes) -> float:
    """Return the mean cost of a user's model; users that are no targets cost nothing."""
    settings, share = config.train, training_share(config.prepare, sizes)
    least, most = settings.targets_min or 0, settings.targets_max or sizes.ratings
    kernels = {"most_kernel": settings.max_kernel_ratings, "landmarks": settings.landmarks}
    typical = sizes.of_users()
    targets = [size for size in typical if least <= size <= most]
    costs = [model_cost(entry, m * share, config.features.width, **kernels) for m in targets]
    return sum(costs) / len(typical)
