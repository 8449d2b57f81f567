"""How many ratings every item has: counted by the workers that make the blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.session.workers import Work
from spark_rank.tables.contract import Column, Contract, arrow_schema
from spark_rank.tables.contracts import BLOCKS
from spark_rank.users.batches import ragged

IntArray = NDArray[np.int64]

# what every task has counted
TASK_COUNTS = Contract(
    "task_item_counts",
    1,
    "one row per task and item that it has met",
    (
        Column("item", "int", "dense item number"),
        Column("n_train", "bigint", "its training ratings"),
        Column("n", "bigint", "all its ratings"),
    ),
)
_SCHEMA = arrow_schema(TASK_COUNTS.columns)


def with_counts(
    batches: Iterator[pa.RecordBatch], arrange: Work
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the blocks that `arrange` makes, and behind them what their items' ratings come to.

    Both with the name of their table. Holds two numbers per item.
    """
    n_train, n = np.zeros((2, 0), dtype=np.int64)
    for blocks in arrange(batches):
        items, ends = ragged(blocks.column("items"))
        behind = np.arange(len(items)) - np.repeat(ends[:-1], np.diff(ends))
        train = behind < np.repeat(blocks.column("n_train").to_numpy(), np.diff(ends))
        n, n_train = _added(n, np.bincount(items)), _added(n_train, np.bincount(items[train]))
        yield BLOCKS.table, blocks
    found = np.flatnonzero(n)
    n_train = _added(n_train, np.zeros(len(n), dtype=np.int64))
    columns = [pa.array(found, pa.int32()), pa.array(n_train[found]), pa.array(n[found])]
    yield TASK_COUNTS.table, pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def item_counts(of_tasks: DataFrame, items: DataFrame) -> DataFrame:
    """Return ``item_id, item, n_train, n`` of every item that was counted, by number."""
    sums = [F.sum(name).alias(name) for name in ("n_train", "n")]
    counts = of_tasks.groupBy("item").agg(*sums).join(items, "item")
    return counts.select("item_id", "item", "n_train", "n").coalesce(1).sortWithinPartitions("item")


def _added(a: IntArray, b: IntArray) -> IntArray:
    """Return the sum of two arrays, the shorter one continued by zeros."""
    total = np.zeros(max(len(a), len(b)), dtype=np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total
