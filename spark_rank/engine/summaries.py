"""Distributions of per-user metrics, computed in Spark and independent of the partitioning."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from scipy.stats import t as student

_LEVEL = 0.95


def summarise(metrics: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return one row per learner and metric: users, mean, sd, t interval, quantiles.

    Users for whom a metric is undefined (null) do not count for it. A group is one sorted array:
    eight bytes per user.
    """
    long = metrics.select(
        "learner",
        F.explode(
            F.array(*[F.struct(F.lit(n).alias("metric"), F.col(n).alias("value")) for n in names])
        ).alias("entry"),
    ).select("learner", "entry.metric", "entry.value")
    quantiles = [
        F.percentile("value", F.lit(share)).alias(f"p{round(share * 100):02d}")
        for share in (0.05, 0.25, 0.5, 0.75, 0.95)
    ]
    grouped = long.groupBy("learner", "metric").agg(
        F.count("value").alias("users"),
        # sums of doubles depend on the order of addition: sorted, it is always the same
        F.array_sort(F.collect_list("value")).alias("values"),
        *quantiles,
    )
    return _with_interval(grouped).orderBy("learner", "metric")


def _with_interval(grouped: DataFrame) -> DataFrame:
    users = F.col("users")
    total = F.aggregate("values", F.lit(0.0), lambda sum_, x: sum_ + x)
    frame = grouped.withColumn("mean", total / F.nullif(users, F.lit(0)))
    mean = F.col("mean")
    squares = F.aggregate("values", F.lit(0.0), lambda sum_, x: sum_ + (x - mean) * (x - mean))
    frame = frame.withColumn("sd", F.when(users > 1, F.sqrt(squares / (users - 1))))
    half = _student_quantile(frame) * F.col("sd") / F.sqrt(users)
    return frame.withColumn("ci_low", mean - half).withColumn("ci_high", mean + half).drop("values")


def _student_quantile(grouped: DataFrame) -> Column:
    """Return the t quantile for each group's number of users, as a lookup of the few counts."""
    counts = sorted({row["users"] for row in grouped.select("users").distinct().collect()})
    upper = 0.5 + _LEVEL / 2.0
    pairs = [
        F.when(F.col("users") == n, F.lit(float(student.ppf(upper, n - 1))))
        for n in counts
        if n > 1
    ]
    return F.coalesce(F.lit(None).cast("double"), *pairs)
