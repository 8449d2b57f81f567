"""How long stages take: usual costs of a rating and a user, and how far off that may be.

Costs are seconds of one core of a server, by ``benchmarks/plan.py`` and ``benchmarks/scale.py``;
each learner declares its own.
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
# of a rating and of a user, by stage; those of evaluate count for every learner
_RATING = {
    "synthesize": 8e-6, "ingest": 3.2e-6, "prepare": 0.9e-6, "features": 2.4e-7, "tune": 2.4e-7,
    "evaluate": 1e-7, "rank": 2e-7, "aggregate": 2e-7, "refit": 2.4e-7,
}  # fmt: skip
_USER = {"train": 1.4e-5, "evaluate": 1.25e-5, "rank": 5e-6, "recommend": 4e-5}
# of a list: a user, item and feature; with a kernel, of every rating
_PRODUCT, _KERNEL = 2.5e-11, 1e-10
# of the factor model, a round: a second moment of a rating, a solved system
_MOMENT, _SOLVE = 0.8e-9, 3.3e-10
# of ALS, a round: a product of two factors of a rating
_PRODUCT_SUM = 2e-9
_LEARNING = ("tune", "train", "ensemble", "refit")
PLANNED = frozenset((*_RATING, *_USER, *_LEARNING))


class Work(NamedTuple):
    """Seconds of a core that executors spend, and seconds of the driver's cores."""

    executors: float
    driver: float


class Range(NamedTuple):
    """Seconds between two ends."""

    low: float
    high: float


def stage_range(stage: str, config: Config, seconds: float) -> Range:
    """Return the range around an estimate: wider where kernels and choices decide the time."""
    learns = stage in (*_LEARNING, "recommend")
    unsure = learns and any(e.grid or kernel_of(e) != "linear" for e in config.train.learners)
    factor = 4.0 if unsure else 2.0
    return Range((_STAGE + seconds) / factor, (_STAGE + seconds) * factor)


def measured_range(seconds: float, ratio: float) -> Range:
    """Return the range around what a stage took in a run with 1/`ratio` of the work a core."""
    start = min(_STAGE, seconds)
    scaled = start + (seconds - start) * ratio
    return Range(scaled / 1.5, scaled * 1.5)


def stage_work(stage: str, config: Config, sizes: Sizes) -> Work:
    """Return what a stage has to do; nothing where nobody has measured it."""
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
    """Tell whether the driver learns factors in a stage."""
    return config.features.kind == "factors" and _learns_features(stage, config)


def _learns_features(stage: str, config: Config) -> bool:
    grids = any(entry.grid for entry in config.train.learners)
    again = stage in ("features", "refit") or (stage == "tune" and grids)
    return again and config.features.kept_from is None


def scoring(config: Config) -> LearnerConfig:
    """Return the learner whose models make lists; the first where an ensemble does."""
    if config.recommend.learner in BASELINES:
        return LearnerConfig(learner=config.recommend.learner)
    entries = config.train.learners
    return next((e for e in entries if e.label == config.recommend.learner), entries[0])


def labels(config: Config) -> int:
    """Return how many learners have a row for every user, baselines too."""
    return len(config.train.learners) + (len(BASELINES) if config.train.baselines else 0)


def sampled(config: Config, sizes: Sizes) -> tuple[float, float, int]:
    """Return about how many ratings and users factors are learned from, and moments of each."""
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
    """Return the seconds of a core that ALS takes, users and items by turns, on the executors."""
    settings = config.features
    if settings.kind != "als" or not _learns_features(stage, config):
        return 0.0
    squares = 2 * settings.user_share * sizes.ratings * settings.rank * (settings.rank + 1) / 2
    solved = (settings.user_share * sizes.users + sizes.items) * settings.rank**3
    return settings.als_rounds * (squares * _PRODUCT_SUM + solved * _SOLVE)


def _learners(stage: str, config: Config) -> list[LearnerConfig]:
    """Return what a stage learns of a user; of tune every point of a grid, fold by fold."""
    entries = config.train.learners
    if stage == "tune":
        chosen = [replace(entry, selection="k_fold") for entry in entries if entry.grid]
        return config.train.folds * chosen
    if stage == "ensemble":
        return sum(entry.n_members for entry in config.ensemble.learners) * [LearnerConfig("prank")]
    return {"train": entries, "refit": [scoring(config)]}.get(stage, [])


def _model_cost(entry: LearnerConfig, config: Config, sizes: Sizes) -> float:
    """Return the mean cost of a user's model; who is no target has none."""
    settings, share = config.train, training_share(config.prepare, sizes)
    least, most = settings.targets_min or 0, settings.targets_max or sizes.ratings
    kernels = {"most_kernel": settings.max_kernel_ratings, "landmarks": settings.landmarks}
    stand_in = sizes.of_users()
    targets = [size for size in stand_in if least <= size <= most]
    costs = [model_cost(entry, m * share, config.features.width, **kernels) for m in targets]
    return sum(costs) / len(stand_in)
