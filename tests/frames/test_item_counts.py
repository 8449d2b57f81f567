"""Ratings of every item, counted while blocks are made: against counting one by one."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from chispa import assert_df_equality
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from spark_rank.frames.item_counts import block_sizes, counted_items, item_counts
from spark_rank.tables.contracts import ITEM_COUNTS

SCHEMA = pa.schema([("items", pa.list_(pa.int32())), ("n_train", pa.int32())])
users = st.lists(st.integers(0, 12), max_size=6).flatmap(
    lambda items: st.tuples(st.just(items), st.integers(0, len(items)))
)


def batch(rows: list[tuple[list[int], int]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"items": i, "n_train": n} for i, n in rows], SCHEMA)


@given(st.lists(st.lists(users, max_size=9), max_size=3))
def test_counts_are_those_of_the_lists(parts: list[list[tuple[list[int], int]]]) -> None:
    batches = [batch(part) for part in parts]
    (counts,) = counted_items(iter(batches))
    flat = [user for part in parts for user in part]
    every = Counter(item for items, _ in flat for item in items)
    train = Counter(item for items, n_train in flat for item in items[:n_train])
    assert counts.to_pylist() == [
        {"item": item, "n_train": train[item], "n": every[item]} for item in sorted(every)
    ]


BLOCKS = [([3, 0], 1), ([3, 1], 2), ([3, 1], 1), ([3], 1), ([], 0)]


def frame(spark: SparkSession) -> DataFrame:
    schema = "items array<int>, n_train int"
    return spark.createDataFrame(BLOCKS, schema).repartition(3)


def test_the_counts_of_tasks_add_up(spark: SparkSession) -> None:
    named = [(f"id{number}", number) for number in range(5)]
    items = spark.createDataFrame(named, "item_id string, item int")
    found = item_counts(frame(spark), items)
    assert found.columns == [column.name for column in ITEM_COUNTS.columns]
    expected = [("id0", 0, 0, 1), ("id1", 1, 1, 2), ("id3", 3, 4, 4)]
    schema = "item_id string, item int, n_train bigint, n bigint"
    assert_df_equality(found, spark.createDataFrame(expected, schema), ignore_nullable=True)


def test_the_sizes_of_blocks(spark: SparkSession) -> None:
    assert block_sizes(frame(spark))._asdict() == {
        "train_ratings": 5,
        "test_ratings": 2,
        "most_ratings_of_a_user": 2,
        "users_with_nothing_held_out": 3,
    }
