"""The plan of a run: layout, time and memory of every stage, and the settings that follow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark_rank.config import Config
from spark_rank.config.ensemble_checks import on_sequence
from spark_rank.planning.memory import heap, stage_memory
from spark_rank.planning.offer import Offer
from spark_rank.planning.rates import GIGA, UNCERTAINTY, rate, starting
from spark_rank.planning.shortages import Demand, as_setting, beside_heap
from spark_rank.planning.sizes import Sizes
from spark_rank.planning.work import GIVEN_WIDTH, PLANNED, stage_work
from spark_rank.wording import count_of

# an executor with more cores than this shares one heap and one disk among too many
_USUAL_EXECUTOR_CORES = 4
_LEAST_BUCKETS = 16
# the stages that work on a bucket a task
_BY_BUCKET = ("train", "rank", "refit", "recommend")
_TABLE = "table"


@dataclass(frozen=True)
class Layout:
    """Cores, executors and the pieces that the work is cut into."""

    cores: int
    executors: int
    executor_cores: int
    buckets: int
    waves: int


@dataclass(frozen=True)
class Measured:
    """A finished run of the store: how much longer than by the table a stage took in it."""

    run_id: str
    factor: float


@dataclass(frozen=True)
class StagePlan:
    """What one stage is expected to take; `rate` is "table" or the run it was measured in."""

    stage: str
    tasks: int
    seconds: float
    worker_bytes: float
    driver_bytes: float
    rate: str


@dataclass(frozen=True)
class Advice:
    """A setting, the value that is proposed, and why."""

    setting: str
    value: str
    why: str


@dataclass(frozen=True)
class Plan:
    """All of it."""

    run_id: str
    sizes: Sizes
    layout: Layout
    stages: tuple[StagePlan, ...]
    settings: tuple[Advice, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def seconds(self) -> float:
        """Return the time of the whole run, with the start of Spark."""
        return rate("start") + sum(stage.seconds for stage in self.stages)


def make_plan(
    config: Config,
    stages: Sequence[str],
    sizes: Sizes,
    layout: Layout,
    offer: Offer,
    measured: Mapping[str, Measured],
) -> Plan:
    """Return the plan of the stages; those in `measured` by what they took in another run."""
    plans = tuple(
        _stage_plan(stage, config, sizes, layout, offer, measured.get(stage)) for stage in stages
    )
    advice = (_executor_advice if offer.kind != "local" else _local_advice)(plans, sizes, layout)
    return Plan(
        config.run_id, sizes, layout, plans, (*advice, *_cutting(config, layout)),
        tuple(_notes(config, stages, offer)),
    )  # fmt: skip


def layout_of(config: Config, cores: int, offer: Offer, waves: int) -> Layout:
    """Return how many executors there are; locally the driver is the only one."""
    own = cores if offer.kind == "local" else min(cores, offer.tasks or _USUAL_EXECUTOR_CORES)
    return Layout(cores, math.ceil(cores / own), own, config.prepare.buckets, waves)


def is_planned(stage: str) -> bool:
    """Tell whether anything is known of what a stage takes."""
    return stage in PLANNED


def demand(stage: str, config: Config, sizes: Sizes, tasks: int, cores: int) -> Demand:
    """Return what a stage needs of a JVM that runs so many tasks at a time."""
    memory = stage_memory(stage, config, sizes)
    most = config.prepare.buckets if stage in _BY_BUCKET else tasks
    return Demand(
        stage, most, memory.worker, memory.driver, heap(min(tasks, most), sizes.ratings, cores)
    )


def expected_seconds(
    stage: str, config: Config, sizes: Sizes, layout: Layout, driver: int
) -> float:
    """Return the time of a stage by the table; `driver` is the number of the driver's cores."""
    work = stage_work(stage, config, sizes)
    busy = min(layout.cores, _tasks(stage, layout))
    return starting(stage) + work.executors / busy + work.driver / max(driver, 1)


def _tasks(stage: str, layout: Layout) -> int:
    """Return how many tasks there are to share a stage's work."""
    if stage in ("train", "refit"):  # two waves are under way at a time
        return min(layout.buckets, 2 * -(-layout.buckets // layout.waves))
    if stage in _BY_BUCKET:
        return layout.buckets
    return max(layout.cores, layout.buckets) if stage == "prepare" else layout.cores


def _stage_plan(
    stage: str, config: Config, sizes: Sizes, layout: Layout, offer: Offer, found: Measured | None
) -> StagePlan:
    seconds = expected_seconds(stage, config, sizes, layout, driver_cores(layout.cores, offer))
    if found is not None:
        seconds = starting(stage) + (seconds - starting(stage)) * found.factor
    memory = stage_memory(stage, config, sizes)
    source = _TABLE if found is None else f"run {found.run_id}"
    return StagePlan(stage, _tasks(stage, layout), seconds, memory.worker, memory.driver, source)


def driver_cores(cores: int, offer: Offer) -> int:
    """Return how many cores the driver's own computations have: its machine's, locally all."""
    return cores if offer.kind == "local" else offer.machine.cores


def _executor_advice(plans: Sequence[StagePlan], sizes: Sizes, layout: Layout) -> list[Advice]:
    tasks = layout.executor_cores
    worker = max(plan.worker_bytes for plan in plans)
    driver = max(plan.driver_bytes for plan in plans)
    need = beside_heap(Demand("", tasks, worker, driver, 0.0), tasks)
    return [
        Advice(
            "spark.executor.cores", str(tasks),
            f"{count_of(layout.executors, 'executor')} of so many",
        ),
        Advice(
            "spark.executor.memory", as_setting(heap(tasks, sizes.ratings, layout.cores)),
            "heap of an executor",
        ),
        Advice(
            "spark.executor.memoryOverhead", as_setting(need),
            f"{tasks} Python workers of {worker / GIGA:.1f} GB, {rate('jvm') / GIGA:.1f} GB of "
            "the JVM's own",
        ),
        Advice("spark.driver.memory", as_setting(rate("driver heap")), "heap of the driver"),
        Advice(
            "spark.driver.memoryOverhead", as_setting(driver),
            "the driver's Python; in client mode its machine must have it free",
        ),
    ]  # fmt: skip


def _local_advice(plans: Sequence[StagePlan], sizes: Sizes, layout: Layout) -> list[Advice]:
    need = heap(layout.cores, sizes.ratings, layout.cores)
    beside = rate("jvm") + max(
        layout.cores * plan.worker_bytes + plan.driver_bytes for plan in plans
    )
    return [
        Advice(
            "spark.driver.memory", as_setting(need),
            f"heap, for {count_of(layout.cores, 'task')} at a time; beside it "
            f"{beside / GIGA:.1f} GB must be free for Python",
        )
    ]  # fmt: skip


def _cutting(config: Config, layout: Layout) -> list[Advice]:
    """Return how the work is best cut into pieces."""
    buckets = max(_LEAST_BUCKETS, config.prepare.buckets, 2 * layout.cores)
    tasks = max(_LEAST_BUCKETS, 2 * layout.cores)
    return [
        Advice("prepare.buckets", str(buckets), "two for every core, or more, in a new run"),
        Advice("spark.sql.shuffle.partitions", str(tasks), "two for every core"),
    ]


def _notes(config: Config, stages: Sequence[str], offer: Offer) -> list[str]:
    notes = [
        f"Times are reckoned from rates measured on another machine: expect {1 / UNCERTAINTY:g} to "
        f"{UNCERTAINTY:g} times as much; nothing is known of the network."
    ]
    if offer.kind == "standalone":
        notes.append(
            "A standalone worker reserves no memory beside the heap: its machine must have the "
            "overhead free for every executor."
        )
    if config.features.kind == "given":
        notes.append(f"Given features are taken to be {GIVEN_WIDTH} numbers an item.")
    if "ensemble" in stages and on_sequence(config.ensemble):
        notes.append("An ensemble on one sequence is not reckoned.")
    if config.prepare.filters or config.prepare.user_share < 1.0:
        notes.append("What prepare.filters and user_share drop is known after prepare only.")
    return notes
