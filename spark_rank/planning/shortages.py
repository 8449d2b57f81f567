"""Warnings about too little memory or too few tasks, which name the setting to change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from spark_rank.config import Config
from spark_rank.planning.memory import DRIVER_HEAP, GIGA, JVM, Demand, demand
from spark_rank.planning.offer import PYTHON_LIMIT, Offer
from spark_rank.planning.sizes import Sizes
from spark_rank.planning.times import makes_factors
from spark_rank.wording import count_of

# estimates are rough: this share of a need is enough
_ENOUGH = 0.9
# settings are proposed in steps of a quarter of a gigabyte
_STEP = 256


@dataclass(frozen=True)
class Shortage:
    """A setting that is too small for a stage, in words."""

    setting: str
    message: str


def as_setting(size: float) -> str:
    """Return a size as Spark takes it, rounded up."""
    megabytes = max(1, math.ceil(size / 2**20 / _STEP)) * _STEP
    return f"{megabytes // 1024}g" if megabytes % 1024 == 0 else f"{megabytes}m"


def shortages(need: Demand, offer: Offer, settings: Mapping[str, str]) -> list[Shortage]:
    """Return what is too small for a stage, and a memory limit that would break NumPy."""
    missing = [_heap(need, offer), _beside(need, offer), _driver(need, offer)]
    if PYTHON_LIMIT in settings:
        text = (
            f"{PYTHON_LIMIT} limits the address space of Python workers. They map more memory than "
            "they use, and would fail: leave it unset and set spark.executor.memoryOverhead"
        )
        missing.append(Shortage(PYTHON_LIMIT, text))
    return [shortage for shortage in missing if shortage is not None]


def idle_cores(cores: int, buckets: int) -> list[Shortage]:
    """Return a shortage if there are fewer buckets than cores; for use before `prepare`."""
    text = (
        f"train, rank and recommend have a task per bucket, and {cores - buckets} of {cores} "
        f"cores will have none: set prepare.buckets={2 * cores} in a new run"
    )
    return [] if buckets >= cores else [Shortage("prepare.buckets", text)]


def driver_model(config: Config, sizes: Sizes, offer: Offer) -> str | None:
    """Return a warning if the driver has too little memory for its factor model; else None."""
    if not makes_factors("features", config):
        return None
    need = _driver_need(config, sizes)
    heap = (offer.heap or DRIVER_HEAP) if offer.kind == "local" else DRIVER_HEAP
    by_als = replace(config, features=replace(config.features, kind="als"))
    if offer.machine.memory >= need + heap or _driver_need(by_als, sizes) >= need:
        return None
    return (
        f"features: the driver's factor model of {count_of(sizes.items, 'item')} needs about "
        f"{_gb(need)} of Python beside {_gb(heap)} of heap; the driver's machine has "
        f"{_gb(offer.machine.memory)}: set features.kind=als, which learns factors on the executors"
    )


def _driver_need(config: Config, sizes: Sizes) -> float:
    return demand("features", config, sizes, 1, 1).driver


def beside_heap(need: Demand, tasks: int) -> float:
    """Return the bytes that an executor needs beside its heap."""
    return JVM + min(tasks, need.tasks) * need.worker


def _heap(need: Demand, offer: Offer) -> Shortage | None:
    if offer.heap is None or offer.tasks is None or offer.heap >= _ENOUGH * need.heap:
        return None
    local = offer.kind == "local"
    setting = "spark.driver.memory" if local else "spark.executor.memory"
    has = "the driver, which runs the tasks," if local else "the executor"
    return Shortage(
        setting,
        f"{need.stage} needs about {_gb(need.heap)} of heap for "
        f"{count_of(min(offer.tasks, need.tasks), 'task')} at a time; {has} has "
        f"{_gb(offer.heap)}: set {setting}={as_setting(need.heap)}",
    )


def _beside(need: Demand, offer: Offer) -> Shortage | None:
    if offer.beside is None or offer.tasks is None:
        return None
    local = offer.kind == "local"
    size = beside_heap(need, offer.tasks) + (need.driver if local else 0.0)
    if offer.beside >= _ENOUGH * size:
        return None
    workers = count_of(min(offer.tasks, need.tasks), "Python worker")
    driver = f", {_gb(need.driver)} of the driver's Python" if local else ""
    head = (
        f"{need.stage} needs about {_gb(size)} beside the JVM's heap ({workers} of "
        f"{_gb(need.worker)}, {_gb(JVM)} of the JVM's own{driver}); "
    )
    if not local:
        setting = "spark.executor.memoryOverhead"
        has = f"the executor has {_gb(offer.beside)} of overhead"
        return Shortage(setting, f"{head}{has}: set {setting}={as_setting(size)}")
    fewer = int((offer.beside - JVM - need.driver) / need.worker)
    remedy = "take a larger machine, or fewer users"
    if 1 <= fewer < offer.tasks:
        remedy = f"take fewer cores, --spark 'spark.master=local[{fewer}]'"
    has = f"this machine has {_gb(offer.beside)} beside it"
    return Shortage("spark.master", f"{head}{has}: {remedy}")


def _driver(need: Demand, offer: Offer) -> Shortage | None:
    """Return the shortage of the driver's Python on a cluster."""
    if offer.kind == "local" or offer.machine.memory >= need.driver + DRIVER_HEAP:
        return None
    setting = "spark.driver.memoryOverhead"
    return Shortage(
        setting,
        f"{need.stage} needs about {_gb(need.driver)} for the driver's Python; its machine has "
        f"{_gb(offer.machine.memory)} in all: take a larger machine, in cluster mode set "
        f"{setting}={as_setting(need.driver)}, or lower features.max_ratings",
    )


def _gb(size: float) -> str:
    return f"{max(size, 0.0) / GIGA:.1f} GB"
