"""Ratings of every item, counted while blocks are made: against counting one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_rank.frames.item_counts import TASK_COUNTS, item_counts, with_counts
from spark_rank.tables.contracts import BLOCKS, ITEM_COUNTS

SCHEMA = pa.schema([("items", pa.list_(pa.int32())), ("n_train", pa.int32())])
users = st.lists(st.integers(0, 12), max_size=6).flatmap(
    lambda items: st.tuples(st.just(items), st.integers(0, len(items)))
)


def batch(rows: list[tuple[list[int], int]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"items": i, "n_train": n} for i, n in rows], SCHEMA)


def as_they_are(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


@given(st.lists(st.lists(users, max_size=9), max_size=3))
def test_counts_are_those_of_the_lists(parts: list[list[tuple[list[int], int]]]) -> None:
    batches = [batch(part) for part in parts]
    *blocks, (name, counts) = with_counts(iter(batches), as_they_are)
    assert blocks == [(BLOCKS.table, each) for each in batches], "as they were, in their order"
    flat = [user for part in parts for user in part]
    every = Counter(item for items, _ in flat for item in items)
    train = Counter(item for items, n_train in flat for item in items[:n_train])
    assert name == TASK_COUNTS.table
    assert counts.to_pylist() == [
        {"item": item, "n_train": train[item], "n": every[item]} for item in sorted(every)
    ]


def test_the_counts_of_tasks_add_up(spark: SparkSession) -> None:
    counted = [(3, 1, 2), (0, 0, 1), (3, 4, 4), (1, 2, 2)]
    of_tasks = spark.createDataFrame(counted, "item int, n_train bigint, n bigint").repartition(3)
    named = [(f"id{number}", number) for number in range(5)]
    items = spark.createDataFrame(named, "item_id string, item int")
    found = item_counts(of_tasks, items)
    assert found.columns == [column.name for column in ITEM_COUNTS.columns]
    assert [tuple(row) for row in found.collect()] == [
        ("id0", 0, 0, 1), ("id1", 1, 2, 2), ("id3", 3, 5, 6)
    ]  # fmt: skip
