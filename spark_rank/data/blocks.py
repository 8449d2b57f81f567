"""User blocks: all of a user's ratings in one row, in hash order, the first `n_train` to train."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def user_blocks(
    ratings: DataFrame, users: DataFrame, *, seed: int, train_share: float, buckets: int
) -> DataFrame:
    """Return one block per user.

    The order inside a block is that of a hash of (seed, user, item): the split is a fixed random
    one that no partitioning, retry or re-run can change, and no (user, item) is on both sides.
    """
    bucket = F.pmod(F.xxhash64("user"), F.lit(buckets)).cast("int")
    entry = F.struct(
        F.xxhash64(F.lit(seed), F.lit("split"), "user", "item").alias("order"),
        "item",
        "rating",
        "timestamp",
    )
    # one shuffle: the grouping reuses the partitioning by bucket, and each bucket is one file
    grouped = (
        ratings.withColumn("bucket", bucket)
        .repartition(buckets, "bucket")
        .groupBy("bucket", "user")
        .agg(F.sort_array(F.collect_list(entry)).alias("entries"))
    )
    return grouped.join(users, "user").select(
        "user",
        "user_id",
        F.col("entries.item").alias("items"),
        F.col("entries.rating").alias("ratings"),
        F.col("entries.timestamp").alias("timestamps"),
        training_size(F.size("entries"), train_share).alias("n_train"),
        "bucket",
    )


def training_size(size: Column, train_share: float) -> Column:
    """Return how many of `size` ratings train: the share, rounded up, but one left to test.

    A user with a single rating trains on it; a share of 1 keeps nothing for testing.
    """
    share = F.ceil(size * F.lit(train_share)).cast("int")
    if train_share >= 1.0:
        return size.cast("int")
    return F.greatest(F.lit(1), F.least(share, size - 1)).cast("int")


def training_part(blocks: DataFrame, *keep: str) -> DataFrame:
    """Return the columns `keep`, ``item`` and ``rating``, a row per training rating.

    It is all that features may see.
    """
    zipped = F.arrays_zip(
        F.slice("items", 1, F.col("n_train")).alias("item"),
        F.slice("ratings", 1, F.col("n_train")).alias("rating"),
    )
    exploded = blocks.select(*keep, F.explode(zipped).alias("entry"))
    return exploded.select(
        *keep, F.col("entry.item").alias("item"), F.col("entry.rating").alias("rating")
    )
