"""What memory every stage takes: of a Python worker, of the driver's Python, of the JVMs' heaps."""

from __future__ import annotations

from dataclasses import dataclass

from spark_rank.config import Config
from spark_rank.planning.rates import rate
from spark_rank.planning.sizes import Sizes, training_share
from spark_rank.planning.work import (
    is_kernel,
    labels,
    moments,
    refit_config,
    sampled,
    scoring,
    width,
)

_FLOAT, _DOUBLE = 4, 8
# rows of one user's scores that are held at once, and of one batch
_SCORED_ROWS, _BATCH = 2**13, 1000
# bytes of a rating in a file of blocks, and of what a model has beside its numbers; a member's
# numbers beside its weights on features
_STORED, _ROW, _RULE = 2.2, 200.0, 5


@dataclass(frozen=True)
class Memory:
    """Bytes of one Python worker and of the driver's Python."""

    worker: float
    driver: float


def stage_memory(stage: str, config: Config, sizes: Sizes) -> Memory:
    """Return what a stage takes at most."""
    worker = _WORKERS.get(stage)
    driver = _DRIVERS.get(stage)
    base = rate("worker")
    return Memory(
        base if worker is None else worker(config, sizes),
        base if driver is None else base + driver(config, sizes),
    )


def heap(tasks: int, ratings: float, cores: int) -> float:
    """Return the heap of a JVM that works on so many of a run's tasks at a time.

    Spark puts on disk what it has no room for: a task takes no more than there is of the data.
    """
    held = min(rate("heap task"), ratings / max(cores, 1) * rate("heap rating"))
    return rate("heap") + tasks * (rate("heap idle") + held)


def _merging(config: Config, sizes: Sizes) -> float:
    return rate("worker ingest")


def _learning(config: Config, sizes: Sizes) -> float:
    heaviest = sizes.heaviest
    if config.train.targets_max is not None:
        heaviest = min(heaviest, config.train.targets_max)
    m = heaviest * training_share(config.prepare, sizes)
    bytes_ = rate("worker") + _mapped(config, sizes) + heaviest * width(config) * rate("gathered")
    weights = _BATCH * width(config) * _DOUBLE * labels(config)
    kernels = [entry.learner for entry in config.train.learners if is_kernel(entry)]
    each = [rate("kernel mprank" if name == "mprank" else "kernel") for name in kernels]
    squared = min(m, config.train.max_kernel_ratings) ** 2
    return bytes_ + weights + max(each, default=0.0) * squared


def _mapped(config: Config, sizes: Sizes) -> float:
    """Return the bytes of the feature files, which workers of a node share."""
    return sizes.items * width(config) * _FLOAT


def _describing(config: Config, sizes: Sizes) -> float:
    return rate("worker") + sizes.users * labels(config) * rate("statistics")


def _listing(config: Config, sizes: Sizes) -> float:
    # the features as they are mapped, and the candidates' in the order of their ids
    shared = 2.0 * _mapped(config, sizes)
    alone = _SCORED_ROWS * width(config) * _DOUBLE if is_kernel(scoring(config)) else 0.0
    return rate("worker") + shared + alone + _held(config, sizes, width(config) * _FLOAT)


def _ranking(config: Config, sizes: Sizes) -> float:
    """Return what a task that orders the held-out items of a bucket's users takes."""
    settings = config.rank
    held_out = sizes.ratings * (1.0 - training_share(config.prepare, sizes)) / sizes.users
    learners = len(settings.learners) or (
        len(config.train.learners) if settings.preference == "votes" else 1
    )
    model = learners * held_out * _FLOAT
    if settings.preference == "members":
        members = max((entry.n_members for entry in config.ensemble.learners), default=0)
        model += members * (width(config) + _RULE) * _FLOAT
    return rate("worker") + _held(config, sizes, model)


def _held(config: Config, sizes: Sizes, model: float) -> float:
    """Return the bytes of a bucket: its blocks as they are stored, its models of so many each.

    Models come in pieces, and are put together.
    """
    each = sizes.ratings * _STORED + 2.0 * sizes.users * (_ROW + model)
    return each / config.prepare.buckets


def _generating(config: Config, sizes: Sizes) -> float:
    return rate("worker") + sizes.items * 12 * _DOUBLE


def _making_features(config: Config, sizes: Sizes) -> float:
    """Return what the driver's Python holds to make the features."""
    cells = sizes.items * width(config)
    if config.features.kind != "factors" or config.features.kept_from is not None:
        return 2.0 * cells * _DOUBLE
    ratings, users = sampled(config, sizes)
    held = ratings * rate("sampled rating") + users * moments(config) * rate("user moment")
    return held + sizes.items * moments(config) * rate("item moment")


def _learning_again(config: Config, sizes: Sizes) -> float:
    return _learning(refit_config(config), sizes)


def _making_features_again(config: Config, sizes: Sizes) -> float:
    return _making_features(refit_config(config), sizes)


def _tuning(config: Config, sizes: Sizes) -> float:
    """Return what a second factor model takes; other kinds of features make a new offset only."""
    if config.features.kind != "factors" or not any(e.grid for e in config.train.learners):
        return 0.0
    return _making_features(config, sizes)


def _naming_items(config: Config, sizes: Sizes) -> float:
    return sizes.items * 200.0


_WORKERS = {
    "synthesize": _generating, "ingest": _merging, "prepare": _merging, "tune": _learning,
    "train": _learning, "ensemble": _learning, "evaluate": _describing, "rank": _ranking,
    "refit": _learning_again, "recommend": _listing,
}  # fmt: skip
_DRIVERS = {
    "features": _making_features, "tune": _tuning, "refit": _making_features_again,
    "recommend": _naming_items,
}  # fmt: skip
