"""Evaluate over merely reading blocks and models: ``python benchmarks/evaluate.py 480000``.

Users have log-normal numbers of held-out ratings (mean about 100), three learners with 32 weights
each. Ratios of one run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_rank.features.files import FeatureFiles, distribute_local, write_files
from spark_rank.frames.distributions import Statistics, distributions
from spark_rank.frames.evaluate import evaluate, roc
from spark_rank.session.session import spark_session
from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import Contract, arrow_schema, ddl
from spark_rank.tables.contracts import BLOCKS, ENSEMBLE_MODELS
from spark_rank.users.batches import build_batch
from spark_rank.users.evaluating import CURVE, EvaluateJob
from spark_rank.users.generalization import BoundFacts
from spark_rank.users.measuring import Measures
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.user_groups import UserGroups

LEARNERS = ("first", "second", "third")
N_ITEMS, D, BUCKETS = 17_770, 32, 16
GROUPS = UserGroups(3, (20, 50, 100, 300))
FACTS = BoundFacts(frozenset(LEARNERS), 100.0, 4.0, 2.0, 1.0, 0.05)
MEASURES = Measures(10, 4.0, 0.25, RankScale((1.0, 2.0, 3.0, 4.0, 5.0)), FACTS, GROUPS)
STATISTICS = Statistics(GROUPS.names(), 0.95, 0, {"stability": 16.0, "margin": 1.0})
HYPERPARAMETERS = '{"C": 0.1, "growth": 0.0, "ridge": "per-example", "rbf_weight": 1.0}'
LEARNED = {
    "status": "learned", "hyperparameters": HYPERPARAMETERS, "kernel": "linear",
    "offset_weight": 1.0, "norm": 0.5, "train_msd": 1.0, "train_m1d": 0.8,
    "train_misranking": 0.3, "train_margin_loss": 0.6, "on_rating_scale": True, "intercept": 3.0,
}  # fmt: skip


def head(user: int) -> tuple[np.random.Generator, int, dict[str, object]]:
    rng = np.random.default_rng(user)
    size = int(np.clip(np.exp(rng.normal(4.0, 1.1)), 1, 8000))
    return rng, size, {"user_id": str(user), "bucket": user % BUCKETS, "n_train": size}


def make_blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = []
        for user in batch.column("id").to_pylist():
            rng, size, row = head(user)
            items = rng.choice(N_ITEMS, 2 * size, replace=False).astype(np.int32)
            ratings = rng.integers(1, 6, 2 * size).astype(np.float32)
            rows.append({**row, "user": user, "items": items, "ratings": ratings})
        yield build_batch(rows, arrow_schema(BLOCKS.columns))


def make_models(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = []
        for user in batch.column("id").to_pylist():
            rng, size, row = head(user)
            rows += [{**row, **LEARNED, "learner": learner, "n_test": size,
                      "weights": rng.normal(0, 0.2, D).astype(np.float32)}
                     for learner in LEARNERS]  # fmt: skip
        yield build_batch(rows, arrow_schema(ENSEMBLE_MODELS.columns))


def made_table(users: DataFrame, make: Callable[..., object], of: Contract, path: str) -> DataFrame:
    by_workers(users, make, ddl(of.columns)).write.parquet(path)  # type: ignore[arg-type]
    return users.sparkSession.read.parquet(path)


def features(spark: SparkSession, folder: Path) -> FeatureFiles:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(N_ITEMS, D)).astype(np.float32)
    ids = [f"i{number}" for number in range(N_ITEMS)]
    folder.mkdir()
    nothing = np.empty((0, D), np.float32)
    files = write_files(folder, matrix, rng.normal(size=N_ITEMS), nothing, ids)
    distribute_local(spark, folder, files.all())
    return files


def timed(name: str, action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    seconds = time.perf_counter() - started
    print(f"  {name:<40}{seconds:8.1f} s", flush=True)
    return seconds


def read_only(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def measure(spark: SparkSession, users: int, folder: Path) -> None:
    ids = spark.range(0, users, 1, BUCKETS)
    blocks = made_table(ids, make_blocks, BLOCKS, f"{folder}/blocks")
    models = made_table(ids, make_models, ENSEMBLE_MODELS, f"{folder}/models")
    job = EvaluateJob(features(spark, folder / "features"), MEASURES)
    print(f"{users:,} users, {len(LEARNERS)} learners")
    reading = timed("read blocks and models", lambda: (read_only(blocks), read_only(models)))
    made, metrics = f"{folder}/measured", f"{folder}/metrics"
    scored = evaluate(blocks, models, job, BUCKETS)
    whole = timed("scores, metrics, bounds, written", lambda: scored.write.parquet(made))
    kept = spark.read.parquet(made)
    whole += timed("the table metrics", lambda: kept.drop(CURVE).write.parquet(metrics))
    table = spark.read.parquet(metrics)
    whole += timed("distributions, comparisons, bounds",
                   lambda: distributions(table, STATISTICS, BUCKETS))  # fmt: skip
    whole += timed("ROC curves", lambda: roc(kept, GROUPS))
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
