"""Item offsets: the shrunken mean of an item's ratings minus the means of their users."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.data.blocks import training_part

# Sums of doubles depend on the order of addition, and so on the partitions; sums of integers do
# not. A residual is rounded to 2⁻²⁴ of a rating unit.
_FIXED_POINT = 1 << 24


def item_offsets(blocks: DataFrame, items: DataFrame, shrinkage: float) -> DataFrame:
    """Return ``item, item_id, offset`` of every item; 0 for items without a training rating.

    ``offset_i = Σ_u (r_ui − r̄_u) / (n_i + shrinkage)`` over training ratings; r̄_u is the mean
    training rating of user u.
    """
    blocks = blocks.where("n_train > 0")
    trained = training_part(blocks.withColumn("mean", training_mean()), "mean")
    residual = F.col("rating").cast("double") - F.col("mean")
    sums = (
        trained.withColumn("residual", F.round(residual * _FIXED_POINT).cast("bigint"))
        .groupBy("item")
        .agg(F.sum("residual").alias("total"), F.count("*").alias("n"))
    )
    offset = F.col("total") / F.lit(float(_FIXED_POINT)) / (F.col("n") + F.lit(shrinkage))
    return items.join(sums, "item", "left").select(
        "item", "item_id", F.coalesce(offset, F.lit(0.0)).alias("offset")
    )


def training_mean() -> Column:
    """Return a block's mean training rating, summed in the order of the block."""
    train = F.slice("ratings", 1, F.col("n_train"))
    total = F.aggregate(train, F.lit(0.0), lambda sum_, r: sum_ + r.cast("double"))
    return total / F.col("n_train")
