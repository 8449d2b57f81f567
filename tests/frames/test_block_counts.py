"""The counts of blocks, against a plain loop."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

import pyarrow as pa
from chispa import assert_df_equality
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from spark_rank.data.profile import COUNT_BINS
from spark_rank.frames.block_counts import (
    BlockCounts,
    block_counts,
    count_blocks,
    counted,
    item_counts,
)
from spark_rank.records.data import RatingScale
from spark_rank.tables.contracts import ITEM_COUNTS

SCHEMA = pa.schema([
    ("items", pa.list_(pa.int32())), ("ratings", pa.list_(pa.float32())), ("n_train", pa.int32())
])  # fmt: skip
LEVELS = RatingScale("levels", 1.0, 3.0, 3)
User = tuple[list[int], int]
users = st.lists(st.integers(0, 12), min_size=1, max_size=20).flatmap(
    lambda items: st.tuples(st.just(items), st.integers(0, len(items)))
)


def rating(item: int) -> float:
    return 1.0 + item % 3 / 2


def batch(rows: list[User]) -> pa.RecordBatch:
    columns = [{"items": i, "ratings": [rating(item) for item in i], "n_train": n} for i, n in rows]
    return pa.RecordBatch.from_pylist(columns, SCHEMA)


@given(st.lists(st.lists(users, max_size=9), max_size=3))
def test_counts_are_those_of_the_lists(parts: list[list[User]]) -> None:
    made = count_blocks(iter([batch(part) for part in parts]), LEVELS)
    found = {(row["kind"], row["key"]): (row["n_train"], row["n"])
             for counts in made for row in counts.to_pylist()}  # fmt: skip
    flat = [user for part in parts for user in part]
    every = Counter(item for items, _ in flat for item in items)
    train = Counter(item for items, n_train in flat for item in items[:n_train])
    of_items = {key: counts for (kind, key), counts in found.items() if kind == "item"}
    assert of_items == {item: (train[item], every[item]) for item in every}
    levels = {key: n for (kind, key), (_, n) in found.items() if kind == "rating"}
    assert levels == Counter(rating(item) for items, _ in flat for item in items)
    bins = Counter(COUNT_BINS[bisect_right(COUNT_BINS, len(items)) - 1] for items, _ in flat)
    assert {key: n for (kind, key), (_, n) in found.items() if kind == "user"} == bins
    untrained = [n for (kind, _), (_, n) in found.items() if kind == "untrained"]
    assert sum(untrained) == sum(n_train == 0 for _, n_train in flat)


BLOCKS: list[User] = [([3, 0], 1), ([3, 1], 2), ([3, 1], 1), ([3], 1)]


def frame(spark: SparkSession) -> DataFrame:
    """Return what three tasks count."""
    blocks = spark.createDataFrame(pa.Table.from_batches([batch(BLOCKS)]))
    return counted(blocks.repartition(3), LEVELS)


def test_the_counts_of_tasks_add_up(spark: SparkSession) -> None:
    named = [(f"id{number}", number) for number in range(5)]
    items = spark.createDataFrame(named, "item_id string, item int")
    found = item_counts(frame(spark), items)
    assert found.columns == [column.name for column in ITEM_COUNTS.columns]
    expected = [("id0", 0, 0, 1), ("id1", 1, 1, 2), ("id3", 3, 4, 4)]
    schema = "item_id string, item int, n_train bigint, n bigint"
    assert_df_equality(found, spark.createDataFrame(expected, schema), ignore_nullable=True)


def test_the_sums_over_users(spark: SparkSession) -> None:
    assert block_counts(frame(spark)) == BlockCounts(
        train=5, ratings={1.0: 5, 1.5: 2}, users={1: 1, 2: 3}, most=2, whole=2, untrained=0
    )
