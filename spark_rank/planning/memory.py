"""What memory a stage takes: of a Python worker, of the driver's Python, of a JVM's heap.

Bytes, by ``benchmarks/plan_memory.py`` and what ``benchmarks/plan.py`` sees.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_rank.config import Config
from spark_rank.learners.costs import kernel_of
from spark_rank.planning.sizes import Sizes
from spark_rank.planning.times import labels, makes_factors, sampled

GIGA = 10**9
# a Python process with its libraries and a batch, one that merges ratings; a JVM beside its heap
_PYTHON, _MERGING, JVM = 0.5e9, 0.62e9, 0.5e9
# a JVM's heap whatever its tasks, of a task, of a rating; a task puts on disk what is beyond
DRIVER_HEAP, _HEAP, _TASK, _RATING, _TASK_MOST = 1e9, 0.5e9, 0.1e9, 100.0, 0.65e9
# of a rating and feature; a squared rating with a kernel; a user and learner of evaluate
_GATHERED, _KERNEL, _STATISTICS = 32.0, 32.0, 110.0
# of factors: a rating, a user's and an item's second moment
_SAMPLED, _USER_MOMENT, _ITEM_MOMENT = 90.0, 8.0, 20.0
# a rating in a file of blocks; a model beside its numbers; an item's title and id
_STORED, _ROW, _NAME = 2.2, 200.0, 200.0
_AT_ONCE = 1000  # models of a batch
BY_BUCKET = ("train", "rank", "refit", "recommend")


@dataclass(frozen=True)
class Demand:
    """What a stage needs: of a Python worker, of the driver's Python, of the heap of a JVM."""

    stage: str
    tasks: int
    worker: float
    driver: float
    heap: float


def demand(stage: str, config: Config, sizes: Sizes, tasks: int, cores: int) -> Demand:
    """Return what a stage needs of a JVM that runs so many tasks at a time, of all `cores`."""
    most = config.prepare.buckets if stage in BY_BUCKET else tasks
    held = min(_TASK_MOST, sizes.ratings / max(cores, 1) * _RATING)
    heap = _HEAP + min(tasks, most) * (_TASK + held)
    return Demand(stage, most, _worker(stage, config, sizes), _driver(stage, config, sizes), heap)


def _worker(stage: str, config: Config, sizes: Sizes) -> float:
    mapped = 4.0 * sizes.items * config.features.width
    if stage in ("ingest", "prepare"):
        return _MERGING
    if stage in ("tune", "train", "ensemble", "refit"):
        return _PYTHON + mapped + _learning(config, sizes)
    if stage == "evaluate":
        return _PYTHON + sizes.users * labels(config) * _STATISTICS
    if stage in ("rank", "recommend"):
        held = 4.0 * (config.features.width if stage == "recommend" else sizes.mean)
        # models of a bucket come in pieces, and are put together
        bucket = sizes.ratings * _STORED + 2.0 * sizes.users * (_ROW + held)
        return _PYTHON + 2.0 * mapped + bucket / config.prepare.buckets
    return _PYTHON


def _learning(config: Config, sizes: Sizes) -> float:
    """Return what the heaviest user takes, all of whose ratings `refit` learns from."""
    settings, width = config.train, config.features.width
    heaviest = min(sizes.heaviest, settings.targets_max or sizes.heaviest)
    weights = _AT_ONCE * width * 8.0 * labels(config)
    kernel = any(kernel_of(entry) != "linear" for entry in settings.learners)
    matrix = kernel * _KERNEL * min(heaviest, settings.max_kernel_ratings) ** 2
    return heaviest * width * _GATHERED + weights + matrix


def _driver(stage: str, config: Config, sizes: Sizes) -> float:
    if makes_factors(stage, config):
        ratings, users, moments = sampled(config, sizes)
        held = users * _USER_MOMENT + sizes.items * _ITEM_MOMENT
        return _PYTHON + ratings * _SAMPLED + moments * held
    made = 16.0 * sizes.items * config.features.width if stage in ("features", "refit") else 0.0
    return _PYTHON + made + (sizes.items * _NAME if stage == "recommend" else 0.0)
