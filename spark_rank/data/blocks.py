"""User blocks: all of a user's ratings in one row, in hash order, the first `n_train` to train."""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def user_blocks(
    ratings: DataFrame,
    users: DataFrame,
    items: DataFrame,
    *,
    seed: int,
    train_share: float,
    buckets: int,
) -> DataFrame:
    """Return one block per user.

    The order inside a block is that of a hash of (seed, user id, item id): the split is a fixed
    random one that no partitioning, retry or re-run can change, nor other users and items that
    come or go; and no (user, item) is on both sides.
    """
    item_keys = items.select("item", F.xxhash64("item_id").alias("item_key"))
    entry = F.struct("item_key", "item", "rating", "timestamp")
    grouped = (
        ratings.join(item_keys, "item").groupBy("user").agg(F.collect_list(entry).alias("entries"))
    )
    blocks = grouped.join(users.select("user", "user_id"), "user")
    user_key = F.xxhash64("user_id")
    ordered = F.array_sort(
        F.transform(
            "entries",
            lambda e: F.struct(
                F.xxhash64(F.lit(seed), F.lit("split"), user_key, e.item_key).alias("order"),
                e.item.alias("item"),
                e.rating.alias("rating"),
                e.timestamp.alias("timestamp"),
            ),
        )
    )
    bucket = F.pmod(F.xxhash64("user"), F.lit(buckets)).cast("int")
    # the last shuffle makes each bucket one file
    return (
        blocks.withColumn("entries", ordered)
        .select(
            "user",
            "user_id",
            F.col("entries.item").alias("items"),
            F.col("entries.rating").alias("ratings"),
            F.col("entries.timestamp").alias("timestamps"),
            training_size(F.size("entries"), train_share).alias("n_train"),
            bucket.alias("bucket"),
        )
        .repartition(buckets, "bucket")
    )


def training_size(size: Column, train_share: float) -> Column:
    """Return how many of `size` ratings train: the share, rounded up, but one left to test.

    A user with a single rating trains on it; a share of 1 keeps nothing for testing.
    """
    # in decimals, for 0.55 · 200 is a little more than 110 in doubles
    exact = size.cast("decimal(12, 0)") * F.lit(Decimal(repr(train_share))).cast("decimal(20, 16)")
    share = F.ceil(exact).cast("int")
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
