"""How many ratings every item has: counted by workers, from the files of the blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.data.contracts import Column, arrow_schema, ddl
from spark_rank.data.workers import by_workers
from spark_rank.engine.batches import ragged
from spark_rank.engine.worker_files import CONTENT, decoded

_COUNTS = (
    Column("item", "int", "dense item number"),
    Column("n_train", "bigint", "its training ratings"),
    Column("n", "bigint", "all its ratings"),
)
_SCHEMA = arrow_schema(_COUNTS)
_ROWS = 2**13  # users whose items are held at once


def item_counts(blocks: DataFrame) -> DataFrame:
    """Return ``item, n_train, n`` of every item that occurs in some whole files of blocks."""
    parts = by_workers(blocks.select(CONTENT), counted, ddl(_COUNTS))
    sums = [F.sum(name).alias(name) for name in ("n_train", "n")]
    return parts.groupBy("item").agg(*sums)


def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn whole files of blocks into one batch of counts. Holds as many as there are items."""
    n_train, n = np.zeros((2, 0), dtype=np.int64)
    for blocks in decoded(batches, ("items", "n_train"), _ROWS):
        items, ends = ragged(blocks.column("items"))
        behind = np.arange(len(items)) - np.repeat(ends[:-1], np.diff(ends))
        train = behind < np.repeat(blocks.column("n_train").to_numpy(), np.diff(ends))
        n = _added(n, np.bincount(items))
        n_train = _added(n_train, np.bincount(items[train]))
    found = np.flatnonzero(n)
    n_train = _added(n_train, np.zeros(len(n), dtype=np.int64))
    columns = [pa.array(found, pa.int32()), pa.array(n_train[found]), pa.array(n[found])]
    yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _added(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the sum of two arrays, the shorter one continued by zeros."""
    total = np.zeros(max(len(a), len(b)), dtype=np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total
