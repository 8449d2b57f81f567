"""The plan of a run: its tasks, the time and memory of every stage, and the settings that fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_rank.config import Config
from spark_rank.planning.memory import BY_BUCKET, DRIVER_HEAP, GIGA, JVM, Demand, demand
from spark_rank.planning.offer import Offer
from spark_rank.planning.shortages import as_setting, beside_heap, driver_model
from spark_rank.planning.sizes import Sizes
from spark_rank.planning.times import SESSION, Range, stage_range, stage_work
from spark_rank.wording import count_of

# an executor with more cores than this shares one heap and one disk among too many
_USUAL_EXECUTOR_CORES = 4
_LEAST_BUCKETS = 16
_USUAL_COSTS = "usual costs"


@dataclass(frozen=True)
class Layout:
    """Cores and executors, and the buckets and waves of the work."""

    cores: int
    executors: int
    executor_cores: int
    buckets: int
    waves: int


@dataclass(frozen=True)
class Measured:
    """The expected time of a stage, from a finished run of the store."""

    run_id: str
    time: Range


@dataclass(frozen=True)
class StagePlan:
    """The memory and time of one stage; `reckoned_from` is "usual costs" or a measured run."""

    need: Demand
    time: Range
    reckoned_from: str


@dataclass(frozen=True)
class Advice:
    """A setting, its proposed value, and the reason."""

    setting: str
    value: str
    why: str


@dataclass(frozen=True)
class Plan:
    """The plan of a run: sizes, layout, stages, proposed settings and warnings."""

    run_id: str
    sizes: Sizes
    layout: Layout
    stages: tuple[StagePlan, ...]
    settings: tuple[Advice, ...]
    warnings: tuple[str, ...]

    @property
    def time(self) -> Range:
        """Return the time of the whole run, including the start of Spark."""
        low, high = (sum(getattr(s.time, end) for s in self.stages) for end in ("low", "high"))
        return Range(SESSION + low, SESSION + high)


def layout_of(config: Config, cores: int, offer: Offer, waves: int) -> Layout:
    """Return the layout of a run; locally the driver is the only executor."""
    executor_cores = (
        cores if offer.kind == "local" else min(cores, offer.tasks or _USUAL_EXECUTOR_CORES)
    )
    return Layout(
        cores, math.ceil(cores / executor_cores), executor_cores, config.prepare.buckets, waves
    )


def make_plan(
    config: Config,
    stages: Sequence[str],
    sizes: Sizes,
    layout: Layout,
    offer: Offer,
    measured: Mapping[str, Measured],
) -> Plan:
    """Return the plan of the stages; those in `measured` by their times in another run."""
    plans = []
    for stage in stages:
        need = demand(stage, config, sizes, layout.executor_cores, layout.cores)
        earlier = measured.get(stage)
        time = stage_time(stage, config, sizes, layout, offer) if earlier is None else earlier.time
        source = _USUAL_COSTS if earlier is None else f"run {earlier.run_id}"
        plans.append(StagePlan(need, time, source))
    settings = (*_memory([plan.need for plan in plans], layout, offer), *_cutting(config, layout))
    model = driver_model(config, sizes, offer) if "features" in stages else None
    warnings = () if model is None else (model,)
    return Plan(config.run_id, sizes, layout, tuple(plans), settings, warnings)


def stage_time(stage: str, config: Config, sizes: Sizes, layout: Layout, offer: Offer) -> Range:
    """Return the time of a stage by usual costs."""
    work = stage_work(stage, config, sizes)
    tasks = layout.buckets
    if stage in ("train", "refit"):  # two waves are under way at a time
        tasks = min(tasks, 2 * -(-tasks // layout.waves))
    busy = min(layout.cores, tasks) if stage in BY_BUCKET else layout.cores
    driver = layout.cores if offer.kind == "local" else offer.machine.cores
    return stage_range(stage, config, work.executors / busy + work.driver / max(driver, 1))


def _memory(needs: Sequence[Demand], layout: Layout, offer: Offer) -> list[Advice]:
    tasks = layout.executor_cores
    heap = as_setting(max(need.heap for need in needs))
    worker, driver = max(need.worker for need in needs), max(need.driver for need in needs)
    if offer.kind == "local":
        beside = max(beside_heap(need, tasks) + need.driver for need in needs) / GIGA
        why = f"heap, for {count_of(tasks, 'task')} at a time; beside it, {beside:.1f} GB must be "
        return [Advice("spark.driver.memory", heap, f"{why}free for Python")]
    beside = max(beside_heap(need, tasks) for need in needs)
    workers = f"{tasks} Python workers of {worker / GIGA:.1f} GB, {JVM / GIGA:.1f} GB of the JVM's"
    why_driver = "the driver's Python; in client mode its machine must have this much free"
    return [
        Advice("spark.executor.memory", heap, f"heap of an executor of {count_of(tasks, 'core')}"),
        Advice("spark.executor.memoryOverhead", as_setting(beside), f"{workers} own"),
        Advice("spark.driver.memory", as_setting(DRIVER_HEAP), "heap of the driver"),
        Advice("spark.driver.memoryOverhead", as_setting(driver), why_driver),
    ]


def _cutting(config: Config, layout: Layout) -> list[Advice]:
    """Return the settings that cut the work into tasks."""
    tasks = max(_LEAST_BUCKETS, 2 * layout.cores)
    buckets = str(max(config.prepare.buckets, tasks))
    return [
        Advice("prepare.buckets", buckets, "two for every core, or more, in a new run"),
        Advice("spark.sql.shuffle.partitions", str(tasks), "two for every core"),
    ]
