"""User blocks: all of a user's ratings in one row, the first `n_train` of them to train."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.config import PrepareConfig
from spark_rank.data.splits import goes_by_time, presentation


def user_blocks(
    ratings: DataFrame, users: DataFrame, items: DataFrame, settings: PrepareConfig, seed: int
) -> DataFrame:
    """Return one block per user who has ratings.

    Order and split follow from a hash of (seed, user id, item id), and of time for the splits by
    time: no partitioning, retry or re-run can change them, nor other users and items that come or
    go; and no (user, item) is on both sides. `items` is joined to every rating: mark it for
    broadcast if it is short. The ratings are shuffled once: each partition is a bucket, in the
    order of the users where groups are made by sorting (`write_settings`).
    """
    item_keys = items.select("item", F.xxhash64("item_id").alias("item_key"))
    with_time = settings.timestamps or goes_by_time(settings)
    columns = ["item_key", "item", "rating", *(["timestamp"] if with_time else [])]
    # the users' ids travel among the ratings: a join of its own would be another shuffle
    rows = (
        ratings.join(item_keys, "item")
        .select("user", *columns)
        .unionByName(users.select("user", "user_id"), allowMissingColumns=True)
        .withColumn("bucket", bucket_number(settings.buckets))
        .repartitionById(settings.buckets, "bucket")
    )
    entry = F.when(F.col("item").isNotNull(), F.struct(*columns))
    grouped = rows.groupBy("bucket", "user").agg(
        F.collect_list(entry).alias("entries"), F.max("user_id").alias("user_id")
    )
    entries, n_train = presentation(F.col("entries"), F.xxhash64("user_id"), settings, seed)
    arranged = grouped.where(F.size("entries") > 0).withColumns(
        {"entries": entries, "n_train": n_train}
    )
    no_times = F.lit(None).cast("array<bigint>")
    return arranged.select(
        "user",
        "user_id",
        F.col("entries.item").alias("items"),
        F.col("entries.rating").alias("ratings"),
        (F.col("entries.timestamp") if settings.timestamps else no_times).alias("timestamps"),
        "n_train",
        "bucket",
    )


def bucket_number(buckets: int) -> Column:
    """Return the bucket of column `user`."""
    return F.pmod(F.xxhash64("user"), F.lit(buckets)).cast("int")


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
