"""What a stage needs that its cluster does not have, in words that name the setting to change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from spark_rank.planning.offer import PYTHON_LIMIT, Offer
from spark_rank.planning.rates import GIGA, rate

# needs are rough: what is nearly enough is enough
_ENOUGH = 0.9
# settings are proposed in steps of a quarter of a gigabyte
_STEP = 256


@dataclass(frozen=True)
class Demand:
    """What a stage needs: of a Python worker, of the driver's Python, of the heap of a JVM."""

    stage: str
    tasks: int
    worker: float
    driver: float
    heap: float


@dataclass(frozen=True)
class Shortage:
    """A setting that is too small for a stage, in words."""

    setting: str
    message: str


def as_setting(size: float) -> str:
    """Return a size as Spark takes it, rounded up."""
    steps = max(1, math.ceil(size / 2**20 / _STEP))
    return f"{steps * _STEP // 1024}g" if steps * _STEP % 1024 == 0 else f"{steps * _STEP}m"


def shortages(demand: Demand, offer: Offer, settings: Mapping[str, str]) -> list[Shortage]:
    """Return what is too small for a stage; the memory limit that breaks NumPy, too."""
    found = [_heap(demand, offer), _beside(demand, offer), _driver(demand, offer)]
    found.append(_address_space(settings))
    return [shortage for shortage in found if shortage is not None]


def idle_cores(cores: int, buckets: int) -> list[Shortage]:
    """Return whether there are fewer buckets than cores, told before the blocks are made."""
    if buckets >= cores:
        return []
    return [
        Shortage(
            "prepare.buckets",
            f"train, rank and recommend have a task per bucket, and {cores - buckets} of {cores} "
            f"cores will have none: set prepare.buckets={2 * cores} in a new run",
        )
    ]


def beside_heap(demand: Demand, tasks: int) -> float:
    """Return what an executor needs beside its heap."""
    return rate("jvm") + min(tasks, demand.tasks) * demand.worker


def _heap(demand: Demand, offer: Offer) -> Shortage | None:
    if offer.heap is None or offer.tasks is None or offer.heap >= _ENOUGH * demand.heap:
        return None
    tasks = _many(min(offer.tasks, demand.tasks), "task")
    local = offer.kind == "local"
    setting = "spark.driver.memory" if local else "spark.executor.memory"
    has = "the driver, which runs the tasks," if local else "the executor"
    return Shortage(
        setting,
        f"{demand.stage} needs about {_gb(demand.heap)} of heap for {tasks} at a time; {has} has "
        f"{_gb(offer.heap)}: set {setting}={as_setting(demand.heap)}",
    )


def _beside(demand: Demand, offer: Offer) -> Shortage | None:
    if offer.beside is None or offer.tasks is None:
        return None
    need = beside_heap(demand, offer.tasks)
    need += demand.driver if offer.kind == "local" else 0.0
    if offer.beside >= _ENOUGH * need:
        return None
    workers = _many(min(offer.tasks, demand.tasks), "Python worker")
    parts = f"{workers} of {_gb(demand.worker)}, {_gb(rate('jvm'))} of the JVM's own"
    head = f"{demand.stage} needs about {_gb(need)} beside the JVM's heap ({parts}"
    if offer.kind == "local":
        return Shortage(
            "spark.master",
            f"{head}, {_gb(demand.driver)} of the driver's Python); this machine has "
            f"{_gb(offer.beside)} beside it: {_smaller(demand, offer.beside, offer.tasks)}",
        )
    setting = "spark.executor.memoryOverhead"
    return Shortage(
        setting,
        f"{head}); the executor has {_gb(offer.beside)} of overhead: set "
        f"{setting}={as_setting(need)}",
    )


def _smaller(demand: Demand, beside: float, tasks: int) -> str:
    """Return what helps a machine whose memory is not enough for all of its workers."""
    workers = int((beside - rate("jvm") - demand.driver) / demand.worker)
    if 1 <= workers < tasks:
        return f"take fewer cores, --spark 'spark.master=local[{workers}]'"
    return "take a larger machine, or fewer users"


def _driver(demand: Demand, offer: Offer) -> Shortage | None:
    """Return what the driver's own Python lacks, on whatever machine it runs."""
    if offer.kind == "local" or offer.machine.memory >= demand.driver + rate("driver heap"):
        return None
    return Shortage(
        "spark.driver.memoryOverhead",
        f"{demand.stage} needs about {_gb(demand.driver)} for the driver's Python; its machine has "
        f"{_gb(offer.machine.memory)} in all: take a larger one, set in a cluster's own driver "
        f"spark.driver.memoryOverhead={as_setting(demand.driver)}, or lower features.max_ratings",
    )


def _address_space(settings: Mapping[str, str]) -> Shortage | None:
    if PYTHON_LIMIT not in settings:
        return None
    return Shortage(
        PYTHON_LIMIT,
        f"{PYTHON_LIMIT} limits the address space of Python workers, which map more than they "
        "use, and breaks them: leave it unset and set spark.executor.memoryOverhead",
    )


def _gb(size: float) -> str:
    return f"{max(size, 0.0) / GIGA:.1f} GB"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
