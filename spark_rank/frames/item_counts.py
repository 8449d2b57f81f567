"""How many ratings every item has in the blocks, and how large the blocks are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import Column, arrow_schema, ddl
from spark_rank.users.batches import ragged

IntArray = NDArray[np.int64]

_COLUMNS = (
    Column("item", "int", "dense item number"),
    Column("n_train", "bigint", "its training ratings"),
    Column("n", "bigint", "all its ratings"),
)
_SCHEMA = arrow_schema(_COLUMNS)


def item_counts(blocks: DataFrame, items: DataFrame) -> DataFrame:
    """Return ``item_id, item, n_train, n`` of every item that a block has, by number."""
    of_tasks = by_workers(blocks.select("items", "n_train"), counted_items, ddl(_COLUMNS))
    sums = [F.sum(name).alias(name) for name in ("n_train", "n")]
    counts = of_tasks.groupBy("item").agg(*sums).join(items, "item")
    return counts.select("item_id", "item", "n_train", "n").coalesce(1).sortWithinPartitions("item")


class BlockSizes(NamedTuple):
    """How many ratings the blocks have, and how many of their users have nothing held out."""

    train_ratings: int
    test_ratings: int
    most_ratings_of_a_user: int
    users_with_nothing_held_out: int


def block_sizes(blocks: DataFrame) -> BlockSizes:
    """Return how large the blocks are; one pass."""
    size, n_train = F.size("items"), F.col("n_train")
    found = blocks.agg(
        F.sum(n_train).alias("train_ratings"),
        F.sum(size - n_train).alias("test_ratings"),
        F.max(size).alias("most_ratings_of_a_user"),
        F.sum((size == n_train).cast("int")).alias("users_with_nothing_held_out"),
    ).head()
    return BlockSizes(*(value or 0 for value in found or (0, 0, 0, 0)))


def counted_items(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what the items of a task's blocks come to. Holds two numbers per item."""
    n_train, n = np.zeros((2, 0), dtype=np.int64)
    for blocks in batches:
        items, ends = ragged(blocks.column("items"))
        behind = np.arange(len(items)) - np.repeat(ends[:-1], np.diff(ends))
        train = behind < np.repeat(blocks.column("n_train").to_numpy(), np.diff(ends))
        n, n_train = _added(n, np.bincount(items)), _added(n_train, np.bincount(items[train]))
    found = np.flatnonzero(n)
    n_train = _added(n_train, np.zeros(len(n), dtype=np.int64))
    columns = [pa.array(found, pa.int32()), pa.array(n_train[found]), pa.array(n[found])]
    yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _added(a: IntArray, b: IntArray) -> IntArray:
    """Return the sum of two arrays, the shorter one continued by zeros."""
    total = np.zeros(max(len(a), len(b)), dtype=np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total
