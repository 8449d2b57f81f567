"""The level of users without training ratings, from user blocks."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.features.files import ItemFeatures
from spark_rank.users.newcomers import Levels, levels_of

# sums of integers do not depend on their order: ratings are added up to 2⁻²⁴ of a unit
_FIXED_POINT = 1 << 24


def newcomer_levels(blocks: DataFrame, counts: pa.Table, features: ItemFeatures) -> Levels:
    """Return the levels of all training ratings; `counts` has ``item, n_train`` of every item."""
    fixed = F.aggregate("ratings", F.lit(0).cast("bigint"), _added)
    train = blocks.withColumn("ratings", F.slice("ratings", 1, F.col("n_train")))
    sums = train.agg(F.sum(fixed), F.sum("n_train")).head()
    total, count = sums if sums is not None and sums[1] else (0, 1)
    items, n_train = (counts.column(name).to_numpy() for name in ("item", "n_train"))
    return levels_of(total / _FIXED_POINT / count, features, items, n_train)


def _added(total: Column, rating: Column) -> Column:
    return total + F.round(rating.cast("double") * _FIXED_POINT).cast("bigint")
