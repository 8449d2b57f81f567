"""Means of predicted and true ratings by bin, counted in Spark for the report's calibration."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.frames.predictions import predictions
from spark_rank.report.calibration import CalibrationPoint
from spark_rank.stages.feature_tables import distribute_files
from spark_rank.stages.training import rank_scale, tasks_by_bucket
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, MODELS, RATINGS
from spark_rank.users.evaluating import PredictJob

_BINS = 20
_MOST_USERS = 20_000
_BUCKETS = 1 << 30
_EXACT = "decimal(28,6)"  # sums of decimals do not depend on their order


def calibration_points(run: Run) -> list[CalibrationPoint]:
    """Return mean prediction and mean rating of held-out items, by learner and bin of predictions.

    The sample has at most about 20,000 users, chosen by hash. Learners whose scores only order
    items have no points; learners of ranks predict the levels of their ranks.
    """
    if not run.has(MODELS):
        return []
    low, high = run.range_of(RATINGS, "rating")
    if low == high:
        return []
    place = F.floor((F.col("prediction") - F.lit(low)) / F.lit((high - low) / _BINS))
    within = F.greatest(F.least(place, F.lit(_BINS - 1)), F.lit(0))
    means = [_exact_mean(name).alias(name) for name in ("prediction", "rating")]
    rows = (
        _predictions(run)
        .groupBy("learner", within.cast("int").alias("bin"))
        .agg(*means, F.count("*").alias("ratings"))
        .collect()
    )
    rows.sort(key=lambda row: (row["learner"], row["bin"]))
    return [
        CalibrationPoint(row["learner"], row["prediction"], row["rating"], row["ratings"])
        for row in rows
    ]


def _predictions(run: Run) -> DataFrame:
    """Return ``learner, prediction, rating`` of every held-out rating of the sample."""
    users = run.rows(BLOCKS)
    draw = F.pmod(F.xxhash64(F.lit("calibration"), "user_id"), F.lit(_BUCKETS))
    sampled = draw < F.lit(round(_BUCKETS * min(1.0, _MOST_USERS / max(users, 1))))
    job = PredictJob(distribute_files(run.spark, run), rank_scale(run))
    blocks, models = run.read(BLOCKS).where(sampled), run.read(MODELS).where(sampled)
    predicted = predictions(blocks, models, job, tasks_by_bucket(run))
    prediction = F.col("predicted_rating").alias("prediction")
    return predicted.select("learner", prediction, F.col("rating").cast("double")).where(
        F.col("prediction").isNotNull()
    )


def _exact_mean(column: str) -> Column:
    return F.sum(F.col(column).cast(_EXACT)).cast("double") / F.count("*")
