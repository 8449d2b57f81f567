"""Distributions of per-user metrics, computed in Spark and independent of the partitioning."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from scipy.stats import t as student

_LEVEL = 0.95
# decimals add up to the same total in any order, doubles do not
_EXACT = "decimal(38, 15)"


def summarise(metrics: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return one row per learner and metric: users, mean, sd, t interval, quantiles.

    Users for whom a metric is undefined (null) do not count for it.
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
    value = F.col("value")
    grouped = long.groupBy("learner", "metric").agg(
        F.count(value).alias("users"),
        F.sum(value.cast(_EXACT)).cast("double").alias("total"),
        F.sum((value * value).cast(_EXACT)).cast("double").alias("squares"),
        *quantiles,
    )
    return _with_interval(grouped).orderBy("learner", "metric")


def _with_interval(grouped: DataFrame) -> DataFrame:
    users, mean = F.col("users"), F.col("total") / F.nullif(F.col("users"), F.lit(0))
    variance = (F.col("squares") - F.col("total") * mean) / F.nullif(users - 1, F.lit(0))
    # rounding may leave a variance a little below 0; an undefined one stays null
    sd = F.sqrt(F.when(variance < 0.0, F.lit(0.0)).otherwise(variance))
    frame = grouped.withColumn("mean", mean).withColumn("sd", sd)
    half = _student_quantile(frame) * F.col("sd") / F.sqrt(users)
    return frame.withColumn("ci_low", F.col("mean") - half).withColumn(
        "ci_high", F.col("mean") + half
    ).drop("total", "squares")  # fmt: skip


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
