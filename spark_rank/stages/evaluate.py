"""evaluate: per-user metrics of every learner and baseline, and their distribution over users."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.data.tables import METRICS, MODELS, SUMMARY
from spark_rank.engine.scoring import METRIC_NAMES, evaluate_batches
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.engine.summaries import summarise
from spark_rank.stages.train import status_counts

_NEEDED = [
    "user_id", "learner", "status", "reason", "n_train", "n_test", "train_msd", "train_m1d",
    "train_misranking", "on_rating_scale",
    "test_ratings", "test_scores",
]  # fmt: skip


def evaluate(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Compare the held-out scores with the held-out ratings, user by user."""
    models = run.read(MODELS).select(_NEEDED)
    ddl = ", ".join(f"{column.name} {column.type}" for column in METRICS.columns)
    rows = run.write(METRICS, models.mapInArrow(evaluate_batches, ddl))
    metrics = spark.read.parquet(run.path(METRICS.table))
    summary = summarise(metrics, METRIC_NAMES)
    lines = run.write(SUMMARY, summary)
    means = _means(spark, run)
    return StageResult(
        f"{rows:,} users × learners",
        {"metrics": rows, "summary": lines},
        {"means": means, "status": status_counts(metrics)},
    )


def _means(spark: SparkSession, run: Run) -> dict[str, dict[str, float | None]]:
    means: dict[str, dict[str, Any]] = {}
    for row in spark.read.parquet(run.path(SUMMARY.table)).collect():
        means.setdefault(row["learner"], {})[row["metric"]] = row["mean"]
    return means


STAGE = Stage(
    name="evaluate",
    run=evaluate,
    settings=lambda config: None,
    needs=lambda config: ("train",),
)
