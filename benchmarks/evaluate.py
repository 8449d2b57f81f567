"""The parts of evaluate over merely reading the scores: ``python benchmarks/evaluate.py 480000``.

Users have log-normal numbers of held-out ratings (mean about 100), three learners each.
Ratios of one run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_rank.frames.evaluating import MADE, evaluate_batches
from spark_rank.store.tables_of_workers import (
    tables_from_files,
    whole_files,
    worker_table,
    write_table,
    write_tables,
)

from spark_rank.frames.distributions import PACKED, Statistics, distributions
from spark_rank.session.filesystem import Filesystem
from spark_rank.session.session import spark_session
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import MODELS
from spark_rank.users.batches import build_batch
from spark_rank.users.generalization import BoundFacts
from spark_rank.users.measuring import SCORED, Measures
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.user_groups import UserGroups

LEARNERS = ("first", "second", "third")
GROUPS = UserGroups(3, (20, 50, 100, 300))
FACTS = BoundFacts(dict.fromkeys(LEARNERS, "mprank"), 100.0, 4.0, 2.0, 1.0, 0.05)
MEASURES = Measures(10, 4.0, 0.25, RankScale((1.0, 2.0, 3.0, 4.0, 5.0)), FACTS, GROUPS)
STATISTICS = Statistics(GROUPS.names(), 0.95, 0, {"stability": 16.0, "margin": 1.0})
HYPERPARAMETERS = '{"C": 0.1, "growth": 0.0, "ridge": "per-example", "rbf_weight": 1.0}'


def make_models(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = []
        for user in batch.column("id").to_pylist():
            rng = np.random.default_rng(user)
            size = int(np.clip(np.exp(rng.normal(4.0, 1.1)), 1, 8000))
            ratings = rng.integers(1, 6, size).astype(np.float32)
            for learner in LEARNERS:
                rows.append(
                    {"user_id": str(user), "learner": learner, "status": "learned",
                     "n_train": size, "n_test": size,
                     "hyperparameters": HYPERPARAMETERS, "kernel": "linear", "offset_weight": 1.0,
                     "norm": 0.5, "train_msd": 1.0, "train_m1d": 0.8, "train_misranking": 0.3,
                     "train_margin_loss": 0.6, "on_rating_scale": True, "test_ratings": ratings,
                     "test_scores": ratings + rng.normal(0, 1.5, size).astype(np.float32)}
                )  # fmt: skip
        yield build_batch(rows, arrow_schema(MODELS.columns))


def timed(name: str, action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    seconds = time.perf_counter() - started
    print(f"  {name:<40}{seconds:8.1f} s", flush=True)
    return seconds


def read_only(models: DataFrame) -> object:
    return models.agg(
        F.sum(F.size("test_scores")), F.sum(F.element_at("test_ratings", 1)), F.count("user_id")
    ).collect()


def measure(spark: SparkSession, users: int, folder: Path) -> None:
    files = Filesystem(spark)
    models_path = str(folder / "models")
    made = worker_table(spark.range(0, users, 1, 16), make_models, MODELS)
    write_table(made, MODELS, files, models_path)
    models = whole_files(spark, [models_path])
    print(f"{users:,} users, {len(LEARNERS)} learners")
    reading = timed("read scores and ratings", lambda: read_only(spark.read.parquet(models_path)))
    work = partial(evaluate_batches, measures=MEASURES)
    evaluated = tables_from_files(models, SCORED, work, MADE)
    places: dict[str, str] = {}
    whole = timed(
        "all metrics, bounds and ROC curves, written",
        lambda: places.update(write_tables(evaluated, files, str(folder / "made"))),
    )
    packed = spark.read.parquet(places[PACKED.table])
    whole += timed("distributions, comparisons, bounds", lambda: distributions(packed, STATISTICS))
    print(f"  {'over reading':<40}{whole / reading:8.1f} x")


def main() -> None:
    users = int(sys.argv[1]) if len(sys.argv) > 1 else 48_000
    with (
        tempfile.TemporaryDirectory(prefix="spark-rank-") as folder,
        spark_session("benchmark", {"spark.master": "local[2]"}) as spark,
    ):
        measure(spark, users, Path(folder))


if __name__ == "__main__":
    main()
