"""The memory that a stage needs: in a Python worker, in the driver's Python, in a JVM's heap.

All in bytes, as measured by ``benchmarks/plan_memory.py`` and ``benchmarks/plan.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_rank.config import Config
from spark_rank.learners.costs import kernel_of
from spark_rank.planning.sizes import Sizes
from spark_rank.planning.times import labels, makes_factors, sampled

GIGA = 10**9
# of a Python process with its libraries and a batch, of one that merges ratings, of a JVM beside
# its heap
_PYTHON, _MERGING, JVM = 0.5e9, 0.62e9, 0.5e9
# heap of the driver, of an executor without tasks, of a task, of a rating; beyond the most for the
# ratings of a task, Spark spills them to disk
DRIVER_HEAP, _HEAP, _TASK, _RATING, _TASK_MOST = 1e9, 0.5e9, 0.1e9, 100.0, 0.65e9
# per rating and feature; per pair of ratings with a kernel; per user and learner in evaluate
_GATHERED, _KERNEL, _STATISTICS = 32.0, 32.0, 110.0
# of factors: per rating, per second moment of a user, per second moment of an item
_SAMPLED, _USER_MOMENT, _ITEM_MOMENT = 90.0, 8.0, 20.0
# per rating in a file of blocks; per model beside its numbers; per item's title and id
_STORED, _ROW, _NAME = 2.2, 200.0, 200.0
_AT_ONCE = 1000  # models in a batch
BY_BUCKET = ("train", "rank", "refit", "recommend")


@dataclass(frozen=True)
class Demand:
    """The bytes that a stage needs in a Python worker, the driver's Python and a JVM's heap."""

    stage: str
    tasks: int
    worker: float
    driver: float
    heap: float


def demand(stage: str, config: Config, sizes: Sizes, tasks: int, cores: int) -> Demand:
    """Return the memory that a stage needs if a JVM runs `tasks` at a time and all have `cores`."""
    task_limit = config.prepare.buckets if stage in BY_BUCKET else tasks
    rating_bytes = min(_TASK_MOST, sizes.ratings / max(cores, 1) * _RATING)
    heap = _HEAP + min(tasks, task_limit) * (_TASK + rating_bytes)
    return Demand(
        stage, task_limit, _worker(stage, config, sizes), _driver(stage, config, sizes), heap
    )


def _worker(stage: str, config: Config, sizes: Sizes) -> float:
    mapped = 4.0 * sizes.items * config.features.width
    if stage in ("ingest", "prepare"):
        return _MERGING
    if stage in ("tune", "train", "ensemble", "refit"):
        return _PYTHON + mapped + _learning(config, sizes)
    if stage == "evaluate":
        return _PYTHON + sizes.users * labels(config) * _STATISTICS
    if stage in ("rank", "recommend"):
        model_bytes = 4.0 * (config.features.width if stage == "recommend" else sizes.mean)
        # the models of a bucket come in pieces, which are then joined: twice their size
        bucket = sizes.ratings * _STORED + 2.0 * sizes.users * (_ROW + model_bytes)
        return _PYTHON + 2.0 * mapped + bucket / config.prepare.buckets
    return _PYTHON


def _learning(config: Config, sizes: Sizes) -> float:
    """Return the bytes for the heaviest user, with all ratings, as `refit` learns from them."""
    settings, width = config.train, config.features.width
    heaviest = min(sizes.heaviest, settings.targets_max or sizes.heaviest)
    weights = _AT_ONCE * width * 8.0 * labels(config)
    kernel = any(kernel_of(entry) != "linear" for entry in settings.learners)
    matrix = kernel * _KERNEL * min(heaviest, settings.max_kernel_ratings) ** 2
    return heaviest * width * _GATHERED + weights + matrix


def _driver(stage: str, config: Config, sizes: Sizes) -> float:
    if makes_factors(stage, config):
        ratings, users, moments = sampled(config, sizes)
        moment_bytes = users * _USER_MOMENT + sizes.items * _ITEM_MOMENT
        return _PYTHON + ratings * _SAMPLED + moments * moment_bytes
    feature_bytes = (
        16.0 * sizes.items * config.features.width if stage in ("features", "refit") else 0.0
    )
    return _PYTHON + feature_bytes + (sizes.items * _NAME if stage == "recommend" else 0.0)
