"""Ingest of Netflix's native text against Spark reading, splitting, sorting and writing it.

Generated ratings are written as combined files; `ingest` makes checked ratings, dictionaries,
quarantine and rating scale of them. The baseline is what Spark alone needs to read the text, split
each line, sort by user and write Parquet: no movie, no check, no numbers. Both are run in the same
session, the baseline first, after a warm-up.

Run: ``python benchmarks/ingest.py [ratings] [folder]`` (1,000,000; a temporary folder). A folder
that holds the generated text already is used again.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, InputConfig, SynthesizeConfig
from spark_rank.engine.session import spark_session
from spark_rank.engine.store import Run
from spark_rank.stages.ingest import ingest
from spark_rank.stages.synthesize import generated_ratings, netflix_text

MOVIES = 17_770
# a user of the generated population rates 198 on average, as Netflix's do
RATINGS_PER_USER = 198
SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "6g",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.ui.liveUpdate.period": "0",
}


class PeakMemory:
    """Samples the resident memory of the JVM below this process."""

    def __init__(self) -> None:
        self.gigabytes = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(0.5):
            self.gigabytes = max(self.gigabytes, _jvm_gigabytes())


def _jvm_gigabytes() -> float:
    """Return the resident memory of the Java processes that this one started."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    total = 0
    for child in children:
        status = Path(f"/proc/{child}/status").read_text()
        if "Name:\tjava" in status:
            total += int(status.split("VmRSS:")[1].split()[0])
    return total / 2**20


def generate(spark: SparkSession, ratings: int, path: str) -> None:
    users = max(2, ratings // RATINGS_PER_USER)
    made = SynthesizeConfig(users=users, items=MOVIES, median_ratings=96.0)
    netflix_text(generated_ratings(Config(synthesize=made), spark)).write.text(path)


def baseline(spark: SparkSession, text: str, out: str) -> float:
    started = time.perf_counter()
    fields = F.split("value", ",")
    lines = spark.read.text(text).select(
        F.get(fields, F.lit(0)).alias("user"),
        F.get(fields, F.lit(1)).alias("rating"),
        F.get(fields, F.lit(2)).alias("date"),
    )
    lines.sort("user").write.mode("overwrite").parquet(out)
    return time.perf_counter() - started


def measured(spark: SparkSession, text: str, store: str, name: str) -> tuple[float, DataFrame]:
    config = Config(store=store, run_id=name, input=InputConfig(path=text, format="netflix"))
    run = Run(spark, store, name)
    spark.sparkContext.setJobGroup(name, name)
    started = time.perf_counter()
    result = ingest(config, spark, run)
    seconds = time.perf_counter() - started
    print(f"  {result.message}")
    return seconds, spark.read.parquet(run.path("ratings"))


def skew(spark: SparkSession, group: str) -> str:
    """Return the greatest max/median of task times over the group's stages of 3 tasks or more."""
    tracker = spark.sparkContext.statusTracker()
    store = spark.sparkContext._jsc.sc().statusStore()
    ratios = []
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else []:
            times = _task_times(spark, store, stage)
            # what takes no time at all is not worth balancing
            if len(times) >= 3 and max(times) > 500:
                ratios.append(max(times) / max(1.0, statistics.median(times)))
    return f"{max(ratios):.2f}" if ratios else "(no stage is long enough)"


def _task_times(spark: SparkSession, store: object, stage: int) -> list[float]:
    tasks = store.taskList(stage, 0, 100_000)  # type: ignore[attr-defined]
    listed = spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(tasks)  # type: ignore[union-attr]
    return [float(task.duration().get()) for task in listed if task.duration().isDefined()]


def main(ratings: int, folder: str) -> None:
    text = f"{folder}/netflix-{ratings}"
    with spark_session("ingest benchmark", SETTINGS) as spark:
        if not Path(text, "_SUCCESS").exists():
            generate(spark, ratings, text)
        size = sum(file.stat().st_size for file in Path(text).glob("part-*")) / 1e6
        print(f"{ratings:,} ratings wanted, {size:,.0f} MB of text")
        small = f"{folder}/netflix-warm"
        if not Path(small).exists():
            generate(spark, 20_000, small)
        baseline(spark, small, f"{folder}/out")
        measured(spark, small, f"{folder}/store", f"warm{os.getpid()}")
        with PeakMemory() as plain_memory:
            plain = baseline(spark, text, f"{folder}/out")
        with PeakMemory() as memory:
            name = f"run{os.getpid()}"
            seconds, kept = measured(spark, text, f"{folder}/store", name)
        rows = kept.count()
        print(f"  baseline {plain:8.1f} s   {plain / rows * 1e6:6.2f} s per million")
        print(f"  ingest   {seconds:8.1f} s   {seconds / rows * 1e6:6.2f} s per million")
        print(f"  ratio    {seconds / plain:8.2f}")
        print(f"  JVM      {memory.gigabytes:8.2f} GB (baseline {plain_memory.gigabytes:.2f} GB)")
        workers = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"  driver's Python {workers:.2f} GB; no Python worker takes part")
        print(f"  slowest task over the median {skew(spark, name)}")


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    if len(sys.argv) > 2:
        main(wanted, sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(wanted, temporary)
