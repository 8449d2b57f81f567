"""Text to blocks at any size: `ingest` and `prepare` of Netflix's native text beside plain Spark.

Generated ratings are written as combined files (`netflix_text`). The baseline is what Spark alone
needs to read the text, split each line, sort by user and write Parquet: no movie, no check, no
numbers, no blocks. All run in the same session of two cores, after a warm-up on 100,000 ratings.
CPU seconds are those of the JVM and its Python workers: other work on the machine stretches the
wall clock, but hardly these.

Run: ``python benchmarks/ingest.py [ratings] [folder]`` (1,000,000; a temporary folder). A folder
that holds the generated text already is used again. On a quiet machine with two cores a hundred
million take about ten minutes, and 8 GB of disk.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from machine import Watch
from netflix_text import write_netflix_text
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, InputConfig
from spark_rank.session.session import spark_session
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run

WARM = 100_000
SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.ui.liveUpdate.period": "0",
}


@dataclass
class Cost:
    """What a piece of work took; memory in GB, skew as slowest task over the median one."""

    seconds: float = 0.0
    cpu: float = 0.0
    jvm: float = 0.0
    worker: float = 0.0
    skew: float = 1.0

    def line(self, name: str, plain: Cost) -> str:
        """Return the cost as a line of the table."""
        return (
            f"  {name:<18}{self.seconds:9.1f}{self.seconds / plain.seconds:8.2f}"
            f"{self.cpu:9.1f}{self.cpu / plain.cpu:8.2f}{self.jvm:8.2f}{self.worker:9.2f}"
            f"{self.skew:8.2f}"
        )


def baseline(spark: SparkSession, text: str, out: str) -> None:
    fields = F.split("value", ",")
    lines = spark.read.text(text).select(
        F.get(fields, F.lit(0)).alias("user"),
        F.get(fields, F.lit(1)).alias("rating"),
        F.get(fields, F.lit(2)).alias("date"),
    )
    lines.sort("user").write.mode("overwrite").parquet(out)


def stage_work(name: str, config: Config, run: Run) -> Callable[[], object]:
    return lambda: run_stage(STAGES[name], config, run.spark, run)


def measured(spark: SparkSession, name: str, work: Callable[[], object]) -> Cost:
    spark.sparkContext.setJobGroup(name, name)
    with Watch() as watch:
        work()
    return Cost(
        watch.seconds, watch.cpu_seconds, watch.jvm_gigabytes, watch.worker_gigabytes,
        skew(spark, name),
    )  # fmt: skip


def skew(spark: SparkSession, group: str) -> float:
    """Return the greatest max/median of task times over the group's stages of 3 tasks or more."""
    tracker = spark.sparkContext.statusTracker()
    ratios = [1.0]
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else []:
            times = _task_times(spark, stage)
            # what takes no time at all is not worth balancing
            if len(times) >= 3 and max(times) > 1_000:
                ratios.append(max(times) / max(1.0, statistics.median(times)))
    return max(ratios)


def _task_times(spark: SparkSession, stage: int) -> list[float]:
    store = spark.sparkContext._jsc.sc().statusStore()
    tasks = store.taskList(stage, 0, 100_000)
    listed = spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(tasks)  # type: ignore[union-attr]
    return [float(task.duration().get()) for task in listed if task.duration().isDefined()]


def data_bytes(folder: str) -> int:
    path = Path(folder.removeprefix("file:"))
    return sum(file.stat().st_size for file in path.rglob("*.parquet"))


def both_stages(
    spark: SparkSession, ratings: int, folder: str, name: str
) -> tuple[Run, list[Cost]]:
    text = f"{folder}/netflix-{ratings}"
    config = Config(
        store=f"{folder}/store", run_id=name, input=InputConfig(path=text, format="netflix")
    )
    run = Run(spark, config.store, name)
    stages = ("ingest", "prepare")
    return run, [measured(spark, f"{s} {name}", stage_work(s, config, run)) for s in stages]


def report(plain: Cost, stages: list[Cost], run: Run, rows: int) -> None:
    made, prepared = stages
    both = Cost(
        made.seconds + prepared.seconds,
        made.cpu + prepared.cpu,
        *(max(getattr(c, k) for c in stages) for k in ("jvm", "worker", "skew")),
    )
    print(
        f"  {'':<18}{'seconds':>9}{'ratio':>8}{'CPU s':>9}{'ratio':>8}{'JVM GB':>8}"
        f"{'worker':>9}{'skew':>8}"
    )
    parts = {"baseline": plain, "ingest": made, "prepare": prepared, "text to blocks": both}
    for name, cost in parts.items():
        print(cost.line(name, plain))
    for table in ("ratings", "blocks"):
        size = data_bytes(run.path(table))
        print(f"  {table}: {size / 1e6:,.0f} MB, {size / rows:.2f} bytes per rating")
    print(f"  {both.seconds / rows * 1e6:.2f} s and {both.cpu / rows * 1e6:.2f} CPU s per million")


def main(ratings: int, folder: str) -> None:
    for size in (WARM, ratings):
        text = Path(folder, f"netflix-{size}")
        if not Path(text, "_SUCCESS").exists():
            started = time.perf_counter()
            write_netflix_text(text, size)
            print(f"{size:,} ratings generated in {time.perf_counter() - started:.0f} s")
    size = sum(file.stat().st_size for file in text.glob("part-*")) / 1e6
    print(f"{ratings:,} ratings wanted, {size:,.0f} MB of text", flush=True)
    with spark_session("ingest benchmark", SETTINGS) as spark:
        out = f"{folder}/out"
        baseline(spark, f"{folder}/netflix-{WARM}", out)
        both_stages(spark, WARM, folder, f"warm{os.getpid()}")
        plain = measured(spark, "baseline", lambda: baseline(spark, str(text), out))
        print(f"  baseline: {plain.seconds:.1f} s", flush=True)
        run, stages = both_stages(spark, ratings, folder, f"run{os.getpid()}")
        rows = spark.read.parquet(run.path("ratings")).count()
        report(plain, stages, run, rows)


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    if len(sys.argv) > 2:
        main(wanted, sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(wanted, temporary)
