"""Prepare against Spark shuffling, grouping and writing the same ratings; bytes of the blocks.

Generated, Netflix-shaped ratings (17,770 items) are put where `ingest` leaves them. The baseline
groups them by user and writes the lists: no order, no split, no profile. Both are run in the same
session after a warm-up; CPU seconds are those of the JVM and its workers, for other work on the
machine stretches the wall clock. Then the columns of the blocks are written in other encodings and
orders.

Run: ``python benchmarks/prepare.py [ratings] [folder]`` (1,000,000; a temporary folder). A folder
that holds the ratings already is used again.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable

from ingest import SETTINGS, data_bytes
from machine import Watch
from netflix_text import MOVIES, RATINGS_PER_USER
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, FilterConfig, PrepareConfig, SynthesizeConfig
from spark_rank.data.rating_scale import find_scale, scale_table
from spark_rank.records.data import IngestFacts
from spark_rank.session.session import spark_session
from spark_rank.stages.prepare import prepare
from spark_rank.stages.runner import run_stage
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.stages.synthesize import generated_ratings
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEMS, RATING_SCALE, RATINGS, USERS

DELTA = {"parquet.writer.version": "v2", "parquet.enable.dictionary": "false"}
CASES = {
    "random": PrepareConfig(),
    "temporal": PrepareConfig(split="temporal"),
    "k_fold": PrepareConfig(split="k_fold"),
    "with timestamps": PrepareConfig(timestamps=True),
    "filtered": PrepareConfig(filters=[FilterConfig(user_min=150, item_min=36)]),
}


def ingested(spark: SparkSession, ratings: int, folder: str) -> Run:
    """Return a run that looks as if `ingest` had been there; ids are the numbers from 1."""
    run = Run(spark, folder, f"ratings-{ratings}")
    made = SynthesizeConfig(
        users=max(2, ratings // RATINGS_PER_USER), items=MOVIES, median_ratings=96.0
    )
    stage = Stage("ingest", numbered, settings=lambda config: config.synthesize)
    run_stage(stage, Config(synthesize=made), spark, run)
    return run


def numbered(config: Config, spark: SparkSession, run: Run) -> StageResult:
    made = config.synthesize
    number = {name: (F.col(name).cast("int") - 1).alias(name) for name in ("user", "item")}
    generated = generated_ratings(config, spark)
    rating = F.col("rating").cast("float").alias("rating")
    part = F.lit(None).cast("int").alias("part")
    rows = run.write(RATINGS, generated.select(*number.values(), rating, "timestamp", part))
    tables = {RATINGS.table: rows}
    for contract, size in ((USERS, made.users), (ITEMS, made.items)):
        id_column, name = (column.name for column in contract.columns)
        ids = spark.range(size).select(
            (F.col("id") + 1).cast("string").alias(id_column), F.col("id").cast("int").alias(name)
        )
        tables[contract.table] = run.write(contract, ids)
    levels, scale = find_scale(run.written(RATINGS), [])
    tables[RATING_SCALE.table] = run.write(RATING_SCALE, scale_table(spark, levels))
    facts = IngestFacts(
        rows_in=rows, quarantined_by_reason={}, rating_scale=scale, read_as="generated"
    )
    return StageResult("numbered", tables, facts)


def case(run: Run, name: str) -> Run:
    """Return the run with a place of its own for the blocks of a case."""
    return run.with_draft(run.draft("prepare", name))


def baseline(run: Run) -> None:
    entry = F.collect_list(F.struct("item", "rating"))
    grouped = run.read(RATINGS).groupBy("user").agg(entry.alias("entries"))
    grouped.write.mode("overwrite").parquet(run.path("baseline"))


def measured(name: str, run: Run, work: Callable[[], object]) -> None:
    run.spark.sparkContext.setJobGroup(name, name)
    rows = run.read(RATINGS).count()
    with Watch() as watch:
        work()
    seconds, cpu = watch.seconds, watch.cpu_seconds
    print(
        f"  {name:<16}{seconds:8.1f} s {seconds / rows * 1e6:7.2f} s and {cpu / rows * 1e6:5.2f} "
        f"CPU s per million; slowest task over the median {skew(run.spark, name)}"
    )


def skew(spark: SparkSession, group: str) -> str:
    """Return max/median of the task times of the group's widest stage: that of the buckets."""
    tracker, store = spark.sparkContext.statusTracker(), spark.sparkContext._jsc.sc().statusStore()
    infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for info in infos if info for stage in info.stageIds}
    times = max((_task_times(spark, store, stage) for stage in stages), key=len)
    return f"{max(times) / statistics.median(times):.2f} ({len(times)} tasks)"


def _task_times(spark: SparkSession, store: object, stage: int) -> list[float]:
    tasks = store.taskList(stage, 0, 100_000)  # type: ignore[attr-defined]
    listed = spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(tasks)  # type: ignore[union-attr]
    return [float(task.duration().get()) for task in listed if task.duration().isDefined()]


def encodings(run: Run) -> None:
    """Print the bytes per rating of single columns, written in several ways."""
    blocks = run.written(BLOCKS)
    rows = run.read(RATINGS).count()
    held_out = F.expr("slice(items, n_train + 1, size(items))")
    ascending = F.concat(
        F.sort_array(F.slice("items", 1, F.col("n_train"))), F.sort_array(held_out)
    )
    days = F.transform("timestamps", lambda t: (t / 86_400).cast("int"))
    kinds: dict[str, tuple[Column, dict[str, str]]] = {
        "items, dictionary": (F.col("items"), {}),
        "items, dictionary, zstd 9": (
            F.col("items"),
            {"parquet.compression.codec.zstd.level": "9"},
        ),
        "items, delta": (F.col("items"), DELTA),
        "items, plain": (F.col("items"), {"parquet.enable.dictionary": "false"}),
        "items ascending in both parts, dictionary": (ascending, {}),
        "items ascending in both parts, delta": (ascending, DELTA),
        "ratings, dictionary": (F.col("ratings"), {}),
        "timestamps": (F.col("timestamps"), {}),
        "timestamps as days": (days, {}),
    }
    for name, (column, options) in kinds.items():
        path = run.path("encoded")
        written: DataFrame = blocks.select(column.alias("column"), "bucket")
        written.write.mode("overwrite").options(**options).partitionBy("bucket").parquet(path)
        print(f"  {name:<44}{data_bytes(path) / rows:6.3f} bytes per rating")


def main(ratings: int, folder: str) -> None:
    with spark_session("prepare benchmark", SETTINGS) as spark:
        warm = ingested(spark, 20_000, folder)
        prepare(Config(), spark, case(warm, "warm"))
        baseline(warm)
        run = ingested(spark, ratings, folder)
        rows = run.read(RATINGS).count()
        print(f"{rows:,} ratings")
        measured("baseline", run, lambda: baseline(run))
        for name, settings in CASES.items():
            config = Config(prepare=settings)
            here = case(run, name)
            measured(name, run, lambda config=config, here=here: prepare(config, spark, here))
            size = data_bytes(here.draft_path(BLOCKS.table))
            print(f"  {'':<16}{size / rows:8.3f} bytes per rating given")
        timed = case(run, "encodings")
        prepare(Config(prepare=CASES["with timestamps"]), spark, timed)
        encodings(timed)


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    if len(sys.argv) > 2:
        main(wanted, sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(wanted, temporary)
