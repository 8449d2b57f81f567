"""Prepares any DataFrame of ratings for user blocks.

``rating_rows`` selects and names the columns, ``check_ratings`` refuses invalid ratings,
``user_numbers`` and ``item_numbers`` make dictionaries, and ``number_ratings`` replaces ids by
numbers. Then `spark_rank.data.blocks.user_blocks` gathers every user's ratings.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from spark_rank.config import InputConfig
from spark_rank.data.dictionaries import number_ids
from spark_rank.data.duplicates import Ratings, resolve
from spark_rank.data.merging import RATING_COLUMNS, RATING_SCHEMA
from spark_rank.data.pieces import NO_TIME
from spark_rank.data.quality import with_reason
from spark_rank.errors import InputDataError
from spark_rank.frames.ids import column_of, id_text
from spark_rank.frames.weights import WEIGHT
from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import ddl
from spark_rank.wording import count_of

# up to so many ratings, the driver numbers the ids
_FEW_RATINGS = 200_000
# a dictionary of up to so many items is broadcast
_BROADCAST_ITEMS = 2_000_000
_RATINGS_A_TASK = 1_000_000


def rating_rows(
    frame: DataFrame,
    user: str,
    item: str,
    rating: str,
    timestamp: str | None = None,
    weight: str | None = None,
) -> DataFrame:
    """Return ``user_id, item_id, rating, timestamp`` from the named columns; ids are strings.

    With `weight`, the column of weights is added.
    """
    if timestamp is None:
        time = F.lit(None).cast("bigint")
    else:
        time = column_of(frame, timestamp)
        if not isinstance(frame.schema[timestamp].dataType, TimestampType):
            time = time.try_cast("double")
        time = time.try_cast("bigint")
    weights = [] if weight is None else [column_of(frame, weight).try_cast("double")]
    return frame.select(
        id_text(frame, user).alias("user_id"),
        id_text(frame, item).alias("item_id"),
        column_of(frame, rating).try_cast("double").alias("rating"),
        time.alias("timestamp"),
        *(column.alias(WEIGHT) for column in weights),
    )


def check_ratings(rows: DataFrame, settings: InputConfig | None = None) -> int:
    """Return the number of ratings, or raise `InputDataError` if a row is not a valid rating.

    `settings` give the valid ratings, as for `ingest`; without, any finite number is valid.
    """
    parsed = {name: F.lit(True) for name in ("text_ok", "fields_ok", "timestamp_ok")}
    with_reasons = with_reason(rows.withColumns(parsed), settings or InputConfig(format="csv"))
    counts = {
        row["reason"]: row["count"] for row in with_reasons.groupBy("reason").count().collect()
    }
    n_valid = counts.pop(None, 0)
    if counts:
        words = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))
        raise InputDataError(
            f"{sum(counts.values()):,} of {count_of(n_valid + sum(counts.values()), 'row')} are "
            f"not valid ratings ({words}): remove or correct them first"
        )
    if n_valid == 0:
        raise InputDataError("the DataFrame holds no rows: give at least one rating to learn from")
    return n_valid


def user_numbers(rows: DataFrame, count: int, known: DataFrame | None = None) -> DataFrame:
    """Return ``user_id, user`` of the `count` ratings; users in `known` keep their numbers."""
    few = count <= _FEW_RATINGS
    return number_ids(rows.select("user_id"), "user_id", "user", known, few=few)


def item_numbers(rows: DataFrame, count: int, content: DataFrame | None = None) -> DataFrame:
    """Return ``item_id, item`` of the `count` ratings' items, and of those with `content`."""
    ids = rows.select("item_id")
    if content is not None:
        ids = ids.unionByName(content.select("item_id").distinct())
    return number_ids(ids, "item_id", "item", few=count <= _FEW_RATINGS)


def number_ratings(
    rows: DataFrame, users: DataFrame, items: DataFrame, count: int, duplicates: str
) -> DataFrame:
    """Return the ratings as ``user, item, rating, timestamp``, each pair of user and item once.

    Ratings of users and items without a number are left out. `duplicates` decides between several
    ratings of one pair: ``latest``, ``first``, ``mean`` or ``reject``, as for `ingest`. `count` is
    the number of `rows`.
    """
    names = items.select("item_id", "item")
    if names.count() <= _BROADCAST_ITEMS:
        names = F.broadcast(names)
    numbered = (
        rows.join(users.select("user_id", "user"), "user_id")
        .join(names, "item_id")
        .select("user", "item", "rating", F.coalesce("timestamp", F.lit(NO_TIME)).alias("time"))
        # a user's ratings in one task; an explicit number, which adaptive execution leaves alone
        .repartition(count // _RATINGS_A_TASK + 1, "user")
    )
    merged = by_workers(numbered, partial(merged_ratings, policy=duplicates), ddl(RATING_COLUMNS))
    return merged.withColumn("rating", F.col("rating").cast("float"))


def merged_ratings(batches: Iterator[pa.RecordBatch], policy: str) -> Iterator[pa.RecordBatch]:
    """Yield the ratings that count, sorted by user and item. Holds the task's ratings in memory."""
    parts = list(batches)
    if not parts:
        return
    table = pa.Table.from_batches(parts)
    columns = [table.column(name).to_numpy() for name in ("user", "item", "rating", "time")]
    types = (np.int64, np.int64, np.float64, np.int64)
    ratings = Ratings(*(column.astype(dtype) for column, dtype in zip(columns, types, strict=True)))
    kept, _ = resolve(ratings, policy)
    arrays = [
        pa.array(kept.users.astype(np.int32)),
        pa.array(kept.items.astype(np.int32)),
        pa.array(kept.ratings),
        pa.array(kept.times, mask=kept.times == NO_TIME),
    ]
    yield from pa.Table.from_arrays(arrays, schema=RATING_SCHEMA).to_batches(65_536)
