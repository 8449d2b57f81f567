"""Counts the ratings of user blocks in one pass: per item, per level and per user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.data.profile import count_bins, rating_keys
from spark_rank.records.data import RatingScale
from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import Column, arrow_schema, ddl
from spark_rank.users.batches import ragged

IntArray = NDArray[np.int64]

# what a row counts: ratings of an item; ratings in a bin of the histogram; users in a bin of their
# numbers of ratings; the most ratings of a user; users with nothing held out, or nothing to learn
# from
_ITEM, _RATING, _USER, _MOST, _WHOLE = "item", "rating", "user", "most", "whole"
_UNTRAINED = "untrained"
_COLUMNS = (
    Column("kind", "string", "what is counted"),
    Column("key", "double", "number of the item, key of the rating, or start of the bin"),
    Column("n_train", "bigint", "training ratings"),
    Column("n", "bigint", "all ratings; for bins of users, users"),
)
_SCHEMA = arrow_schema(_COLUMNS)


class BlockCounts(NamedTuple):
    """The counts over all blocks; `users` counts users by bins of their numbers of ratings."""

    train: int
    ratings: Mapping[float, int]
    users: Mapping[int, int]
    most: int
    whole: int
    untrained: int


def counted(blocks: DataFrame, scale: RatingScale) -> DataFrame:
    """Return the counts of the tasks; `item_counts` and `block_counts` read them: cache them."""
    columns = ("items", "ratings", "n_train")
    return by_workers(blocks.select(*columns), partial(count_blocks, scale=scale), ddl(_COLUMNS))


def item_counts(counted_rows: DataFrame, items: DataFrame) -> DataFrame:
    """Return ``item_id, item, n_train, n`` of every item in the blocks, by item number."""
    of_items = counted_rows.where(F.col("kind") == _ITEM).withColumn(
        "item", F.col("key").cast("int")
    )
    sums = [F.sum(name).alias(name) for name in ("n_train", "n")]
    counts = of_items.groupBy("item").agg(*sums).join(items, "item")
    return counts.select("item_id", "item", "n_train", "n").coalesce(1).sortWithinPartitions("item")


def block_counts(counted_rows: DataFrame) -> BlockCounts:
    """Return the sums of all counts that are not of items."""
    rows = counted_rows.where(F.col("kind") != _ITEM).toArrow().to_pylist()
    sums: dict[str, Counter[float]] = {
        kind: Counter() for kind in (_RATING, _USER, _WHOLE, _UNTRAINED)
    }
    for row in rows:
        if row["kind"] in sums:
            sums[row["kind"]][row["key"]] += row["n"]
    return BlockCounts(
        train=sum(row["n_train"] for row in rows if row["kind"] == _USER),
        ratings=sums[_RATING],
        users={int(start): users for start, users in sums[_USER].items()},
        most=max((row["n"] for row in rows if row["kind"] == _MOST), default=0),
        whole=sum(sums[_WHOLE].values()),
        untrained=sum(sums[_UNTRAINED].values()),
    )


def count_blocks(batches: Iterator[pa.RecordBatch], scale: RatingScale) -> Iterator[pa.RecordBatch]:
    """Yield the counts over the blocks of a task. Needs memory for two numbers per item."""
    n_train, n = np.zeros((2, 0), dtype=np.int64)
    sums: Counter[tuple[str, float]] = Counter()
    train: Counter[tuple[str, float]] = Counter()
    most = 0
    for blocks in batches:
        items, ends = ragged(blocks.column("items"))
        user_n_train = blocks.column("n_train").to_numpy()
        sizes = np.diff(ends)
        position = np.arange(len(items)) - np.repeat(ends[:-1], sizes)
        is_training = position < np.repeat(user_n_train, sizes)
        n, n_train = _added(n, np.bincount(items)), _added(n_train, np.bincount(items[is_training]))
        keys = rating_keys(ragged(blocks.column("ratings"))[0], scale)
        for entry in pc.value_counts(pa.array(keys)).to_pylist():
            sums[_RATING, entry["values"]] += entry["counts"]
        starts = count_bins(sizes)
        for start in np.unique(starts).tolist():
            sums[_USER, start] += int(np.sum(starts == start))
            train[_USER, start] += int(user_n_train[starts == start].sum())
        sums[_WHOLE, 0] += int(np.sum(sizes == user_n_train))
        sums[_UNTRAINED, 0] += int(np.sum(user_n_train == 0))
        most = max(most, int(sizes.max(initial=0)))
    yield from _item_batches(_added(n_train, np.zeros(len(n), np.int64)), n)
    rows = [
        {"kind": kind, "key": key, "n_train": train[kind, key], "n": count}
        for (kind, key), count in sums.items()
    ]
    rows.append({"kind": _MOST, "key": 0, "n_train": 0, "n": most})
    yield pa.RecordBatch.from_pylist(rows, _SCHEMA)


def _item_batches(n_train: IntArray, n: IntArray) -> Iterator[pa.RecordBatch]:
    items = np.flatnonzero(n)
    kinds = pa.array([_ITEM]).take(pa.array(np.zeros(len(items), np.int64)))
    columns = [kinds, pa.array(items, pa.float64()), pa.array(n_train[items]), pa.array(n[items])]
    yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _added(a: IntArray, b: IntArray) -> IntArray:
    """Return the sum of two arrays; the shorter one is padded with zeros."""
    total = np.zeros(max(len(a), len(b)), dtype=np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total
