"""User blocks: all ratings of a user in one row; the first `n_train` are the training part."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.config import PrepareConfig
from spark_rank.data.packed_blocks import (
    BLOCK_COLUMNS,
    NAMED_COLUMNS,
    PACKED_COLUMNS,
    BlockJob,
    arrange_blocks,
    pack_users,
)
from spark_rank.data.splits import GIVEN, goes_by_time, split_keys
from spark_rank.session.sharing import share
from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import ddl
from spark_rank.tables.user_buckets import bucket_column


def user_blocks(
    ratings: DataFrame,
    users: DataFrame,
    items: DataFrame,
    settings: PrepareConfig,
    seed: int,
    *,
    by_bucket: bool = False,
) -> DataFrame:
    """Return a block of every user who has ratings, sorted by bucket and user.

    Order and split depend on a hash of (seed, user id, item id), and for splits by time on the
    times; a given split follows from the column ``held_out`` of the ratings, 0 or 1. They do not
    depend on partitions, retries, or other users and items; and no (user, item) is in both parts.
    Ratings are packed by user where they are, and the packed rows are shuffled by bucket. With
    `by_bucket`, no bucket is in two partitions of `ratings`, and there is no shuffle. Ratings
    sorted by user, as `ingest` writes them, are packed without sorting; any other order gives the
    same blocks. Every worker holds eight bytes per item.
    """
    spark = ratings.sparkSession
    with_time = settings.timestamps or goes_by_time(settings)
    columns = ["user", "item", "rating", *(["timestamp"] if with_time else [])]
    columns += ["held_out"] if settings.split == GIVEN else []
    packed = by_workers(ratings.select(*columns), pack_users, ddl(PACKED_COLUMNS))
    key, bucket = F.xxhash64("user_id").alias("user_key"), bucket_column(settings.buckets)
    rows = packed.join(
        users.select("user", "user_id", key, bucket.alias("bucket")), "user", "left"
    ).select(*[column.name for column in NAMED_COLUMNS])
    if not by_bucket:
        rows = rows.repartitionById(settings.buckets, F.coalesce("bucket", F.lit(0)))
    job = BlockJob(settings, split_keys(spark, seed), share(spark, _item_keys(items)))
    arranged = by_workers(
        rows.sortWithinPartitions("user"), partial(arrange_blocks, job=job), ddl(BLOCK_COLUMNS)
    )
    return arranged.sortWithinPartitions("bucket", "user")


def _item_keys(items: DataFrame) -> NDArray[np.int64]:
    """Return the hash of every item's id, by item number."""
    table = items.select("item", F.xxhash64("item_id").alias("item_key")).toArrow()
    numbers = table.column("item").to_numpy()
    keys = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    keys[numbers] = table.column("item_key").to_numpy()
    return keys


def training_part(blocks: DataFrame, *keep: str) -> DataFrame:
    """Return the columns `keep`, ``item`` and ``rating``, with a row per training rating.

    Features may only be made from these.
    """
    zipped = F.arrays_zip(
        F.slice("items", 1, F.col("n_train")).alias("item"),
        F.slice("ratings", 1, F.col("n_train")).alias("rating"),
    )
    exploded = blocks.select(*keep, F.explode(zipped).alias("entry"))
    return exploded.select(
        *keep, F.col("entry.item").alias("item"), F.col("entry.rating").alias("rating")
    )


def with_held_back(
    blocks: DataFrame, users: DataFrame, parts: int, least_training: int
) -> DataFrame:
    """Hold back the last of `parts` parts of the training ratings of `users` (column ``user``).

    In the blocks of these users the held-back ratings, at least two, replace the held-out part. At
    least `least_training` ratings stay in the training part. Ratings are in the order of a hash,
    or of time for splits by time, so they are held back as the held-out part was split off.
    """
    n_train, chosen = F.col("n_train"), F.col("chosen").isNotNull()
    wanted = F.greatest(F.lit(2), F.floor(n_train / parts).cast("int"))
    held_back = F.least(wanted, n_train - least_training)
    marked = blocks.join(F.broadcast(users.withColumn("chosen", F.lit(True))), "user", "left")
    cut = {
        name: F.when(chosen, F.slice(name, 1, n_train)).otherwise(F.col(name))
        for name in ("items", "ratings")
    }
    # all expressions read the old columns, also the old `n_train`
    cut["n_train"] = F.when(chosen, n_train - held_back).otherwise(n_train)
    return marked.withColumns(cut).drop("chosen")
