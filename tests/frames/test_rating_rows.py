"""Ratings of a DataFrame are merged by the policy, each pair of user and item once."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from spark_rank.frames.blocks import merged_ratings

ROWS = [
    {"user": 1, "item": 0, "rating": 5.0, "time": 10},
    {"user": 0, "item": 2, "rating": 4.0, "time": 30},
    {"user": 1, "item": 0, "rating": 2.0, "time": 20},
    {"user": 0, "item": 1, "rating": 1.0, "time": 5},
]
SCHEMA = pa.schema([
    ("user", pa.int32()), ("item", pa.int32()), ("rating", pa.float64()), ("time", pa.int64())
])  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "expected"), [("latest", 2.0), ("first", 5.0), ("mean", 3.5), ("reject", None)]
)
def test_of_several_ratings_one_counts_in_whatever_order(
    policy: str, expected: float | None
) -> None:
    once = [(0, 1, 1.0), (0, 2, 4.0)]
    for rows in itertools.permutations(ROWS):
        batches = [pa.RecordBatch.from_pylist([row], SCHEMA) for row in rows]
        merged = [row for batch in merged_ratings(iter(batches), policy)
                  for row in batch.to_pylist()]  # fmt: skip
        found = [(row["user"], row["item"], row["rating"]) for row in merged]
        assert found == once + ([] if expected is None else [(1, 0, expected)])


def test_no_rating_is_no_row() -> None:
    assert list(merged_ratings(iter([]), "latest")) == []
