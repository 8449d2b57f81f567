"""Counts, for every two items, the users who rated one higher than the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from spark_rank.compiled import njit
from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import Column, arrow_schema, ddl
from spark_rank.users.batches import ragged

_COUNTS = (Column("counts", "binary", "n × n int64"),)

IntArray = NDArray[np.int64]


def rating_majorities(blocks: DataFrame, candidates: IntArray) -> IntArray:
    """Return m_uv, the number of users who rated candidate u higher than candidate v.

    A user's ratings are a partial ranking with ties; a tie counts for neither. Every task fills
    one matrix, and the driver adds the matrices up one at a time: O(Σ_u c_u²) time for users who
    rated c_u candidates, and memory for n² numbers.
    """
    n = len(candidates)
    row_of = np.full(int(candidates.max()) + 1, -1, dtype=np.int64)
    row_of[candidates] = np.arange(n)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return count_batches(batches, row_of, n)

    partial_counts = by_workers(blocks.select("items", "ratings"), count, ddl(_COUNTS))
    total = np.zeros((n, n), dtype=np.int64)
    for row in partial_counts.toLocalIterator():
        total += np.frombuffer(row["counts"], np.int64).reshape(n, n)
    return total


def count_batches(
    batches: Iterator[pa.RecordBatch], row_of: IntArray, n: int
) -> Iterator[pa.RecordBatch]:
    """Count all batches of a task; `row_of` maps a dense item number to its row, or −1."""
    counts = np.zeros((n, n), dtype=np.int64)
    for batch in batches:
        items, ends = ragged(batch.column("items"))
        ratings, _ = ragged(batch.column("ratings"))
        known = items < len(row_of)
        rows = np.where(known, row_of[np.where(known, items, 0)], -1)
        _count(rows, np.array(ratings, dtype=np.float64), ends, counts)
    packed = {"counts": counts.tobytes()}
    yield pa.RecordBatch.from_pylist([packed], schema=arrow_schema(_COUNTS))


@njit(cache=True)
def _count(rows: IntArray, ratings: NDArray[np.float64], ends: IntArray, counts: IntArray) -> None:
    chosen = np.empty(len(rows), dtype=np.int64)
    for user in range(len(ends) - 1):
        size = 0
        for place in range(ends[user], ends[user + 1]):
            if rows[place] >= 0:
                chosen[size] = place
                size += 1
        for i in range(size):
            a = chosen[i]
            for j in range(i):
                b = chosen[j]
                if ratings[a] > ratings[b]:
                    counts[rows[a], rows[b]] += 1
                elif ratings[b] > ratings[a]:
                    counts[rows[b], rows[a]] += 1
