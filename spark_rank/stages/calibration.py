"""Predicted beside true ratings, counted in Spark: what the report's calibration is drawn from."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.report.calibration import CalibrationPoint
from spark_rank.store.run import Run
from spark_rank.tables.contracts import MODELS, RATING_SCALE

_BINS = 20
_MOST_USERS = 20_000
_BUCKETS = 1 << 30
_EXACT = "decimal(28,6)"  # sums of decimals do not depend on their order


def calibration_points(run: Run) -> list[CalibrationPoint]:
    """Return mean prediction and mean rating of held-out items, by learner and prediction.

    Of at most about 20,000 users, by hash. Learners whose scores only put items in order have
    none; learners of ranks predict the levels of these.
    """
    if not run.has(MODELS):
        return []
    predicted = _predictions(_sampled(run.read(MODELS)), _levels(run))
    ends = predicted.agg(F.min("rating"), F.max("rating")).head()
    if ends is None or ends[0] is None or ends[0] == ends[1]:
        return []
    low, high = float(ends[0]), float(ends[1])
    place = F.floor((F.col("score") - F.lit(low)) / F.lit((high - low) / _BINS))
    within = F.greatest(F.least(place, F.lit(_BINS - 1)), F.lit(0))
    means = [_exact_mean(name).alias(name) for name in ("score", "rating")]
    rows = (
        predicted.groupBy("learner", within.cast("int").alias("bin"))
        .agg(*means, F.count("*").alias("ratings"))
        .orderBy("learner", "bin")
        .collect()
    )
    return [
        CalibrationPoint(row["learner"], float(row["score"]), float(row["rating"]), row["ratings"])
        for row in rows
    ]


def _sampled(models: DataFrame) -> DataFrame:
    """Return the models of so many users, the same ones for every learner."""
    users = models.select("user_id").distinct().count()
    draw = F.pmod(F.xxhash64(F.lit("calibration"), "user_id"), F.lit(_BUCKETS))
    return models.where(draw < F.lit(round(_BUCKETS * min(1.0, _MOST_USERS / max(users, 1)))))


def _predictions(models: DataFrame, levels: list[float]) -> DataFrame:
    """Return a row per learner and held-out rating with its prediction."""
    by_rank = models.where(F.col("test_ranks").isNotNull())
    by_score = models.where(F.col("test_ranks").isNull() & F.col("on_rating_scale"))
    parts = [_exploded(by_score, "test_scores", F.col("pair.test_scores"))]
    if levels:
        level = F.element_at(F.array(*map(F.lit, levels)), F.col("pair.test_ranks"))
        parts.append(_exploded(by_rank, "test_ranks", level))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    return whole.where(F.col("score").isNotNull() & ~F.isnan("score"))


def _exploded(models: DataFrame, column: str, score: Column) -> DataFrame:
    pairs = F.explode(F.arrays_zip(column, "test_ratings")).alias("pair")
    return (
        models.where(F.col(column).isNotNull())
        .select("learner", pairs)
        .select(
            "learner",
            score.cast("double").alias("score"),
            F.col("pair.test_ratings").cast("double").alias("rating"),
        )
    )


def _exact_mean(column: str) -> Column:
    return F.sum(F.col(column).cast(_EXACT)).cast("double") / F.count("*")


def _levels(run: Run) -> list[float]:
    if not run.has(RATING_SCALE):
        return []
    rows = run.read(RATING_SCALE).orderBy("rank").collect()
    return [float(row["rating"]) for row in rows]
