"""From rows of ratings to user blocks, on a DataFrame of anybody's own.

``rating_rows`` names the columns, ``check_ratings`` refuses what is no rating, ``user_numbers`` and
``item_numbers`` make dictionaries, ``number_ratings`` puts them in the place of ids. Then
`spark_rank.data.blocks.user_blocks` gathers every user's ratings.
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

# the ids of so many ratings are numbered by the driver
_FEW_RATINGS = 200_000
# a dictionary of so many items is sent to every task
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
    """Return ``user_id, item_id, rating, timestamp`` from columns of these names; ids as text.

    With a `weight`, that of the rating too.
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
    """Return how many ratings there are, or raise `InputDataError` saying what is none.

    `settings` name the ratings that there may be, as for `ingest`; without, any number.
    """
    sound = {name: F.lit(True) for name in ("text_ok", "fields_ok", "timestamp_ok")}
    judged = with_reason(rows.withColumns(sound), settings or InputConfig(format="csv"))
    counts = {row["reason"]: row["count"] for row in judged.groupBy("reason").count().collect()}
    good = counts.pop(None, 0)
    if counts:
        words = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))
        raise InputDataError(
            f"{sum(counts.values()):,} of {count_of(good + sum(counts.values()), 'row')} are no "
            f"ratings ({words}): drop or mend them first"
        )
    if good == 0:
        raise InputDataError("the DataFrame holds no rows: there is no rating to learn from")
    return good


def user_numbers(rows: DataFrame, count: int, known: DataFrame | None = None) -> DataFrame:
    """Return ``user_id, user`` of the `count` ratings' users; those known keep their numbers."""
    few = count <= _FEW_RATINGS
    return number_ids(rows.select("user_id"), "user_id", "user", known, few=few)


def item_numbers(rows: DataFrame, count: int) -> DataFrame:
    """Return ``item_id, item`` of the `count` ratings' items."""
    return number_ids(rows.select("item_id"), "item_id", "item", few=count <= _FEW_RATINGS)


def number_ratings(
    rows: DataFrame, users: DataFrame, items: DataFrame, count: int, duplicates: str
) -> DataFrame:
    """Return the ratings as ``user, item, rating, timestamp``, each pair of user and item once.

    Those of users and items without a number are left out. Of the `count` ratings, those of one
    pair count by `duplicates`: ``latest``, ``first``, ``mean`` or ``reject``, as for `ingest`.
    """
    names = items.select("item_id", "item")
    if names.count() <= _BROADCAST_ITEMS:
        names = F.broadcast(names)
    numbered = (
        rows.join(users.select("user_id", "user"), "user_id")
        .join(names, "item_id")
        .select("user", "item", "rating", F.coalesce("timestamp", F.lit(NO_TIME)).alias("time"))
        # all of a user's in one task, by number: adaptive execution would make few tasks of many
        .repartition(count // _RATINGS_A_TASK + 1, "user")
    )
    merged = by_workers(numbered, partial(merged_ratings, policy=duplicates), ddl(RATING_COLUMNS))
    return merged.withColumn("rating", F.col("rating").cast("float"))


def merged_ratings(batches: Iterator[pa.RecordBatch], policy: str) -> Iterator[pa.RecordBatch]:
    """Yield the ratings that count, in the order of user and item. Holds the task's ratings."""
    found = list(batches)
    if not found:
        return
    table = pa.Table.from_batches(found)
    columns = [table.column(name).to_numpy() for name in ("user", "item", "rating", "time")]
    kinds = (np.int64, np.int64, np.float64, np.int64)
    given = Ratings(*(column.astype(kind) for column, kind in zip(columns, kinds, strict=True)))
    kept, _ = resolve(given, policy)
    arrays = [
        pa.array(kept.users.astype(np.int32)),
        pa.array(kept.items.astype(np.int32)),
        pa.array(kept.ratings),
        pa.array(kept.times, mask=kept.times == NO_TIME),
    ]
    yield from pa.Table.from_arrays(arrays, schema=RATING_SCHEMA).to_batches(65_536)
