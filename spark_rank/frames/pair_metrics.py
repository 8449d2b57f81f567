"""Computes a metric of every user from rows with a rating and a prediction."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import ddl
from spark_rank.users.rated_pairs import VALUE_COLUMNS, PairMetric, metric_values


def user_values(pairs: DataFrame, metric: PairMetric) -> DataFrame:
    """Return ``user_id, value`` from ``user_id, rating, prediction``; null where undefined."""
    columns = [F.col(name).cast("float").alias(name) for name in ("rating", "prediction")]
    entry = F.struct(*columns)
    gathered = pairs.groupBy("user_id").agg(F.array_sort(F.collect_list(entry)).alias("pairs"))
    lists = gathered.select(
        "user_id",
        F.transform("pairs", lambda pair: pair["rating"]).alias("ratings"),
        F.transform("pairs", lambda pair: pair["prediction"]).alias("predictions"),
    )
    return by_workers(lists, partial(metric_values, metric=metric), ddl(VALUE_COLUMNS))
