"""The pool of reviewers: its members, their ratings, and what changes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pyspark.sql import DataFrame, SparkSession

from spark_rank.features.pool import ReviewerPool
from spark_rank.features.reference import (
    CollectedPool,
    activity_group,
    collect_pool,
    row_medians,
)

SCHEMA = "user int, user_id string, items array<int>, ratings array<float>, n_train int"
Block = tuple[int, str, list[int], list[float], int]


def random_blocks(users: int = 60, n_items: int = 30) -> list[Block]:
    rng = np.random.default_rng(1)
    blocks = []
    for user in range(users):
        size = int(rng.integers(1, 13))
        items = rng.choice(n_items, size, replace=False).tolist()
        ratings = rng.integers(1, 6, size).astype(float).tolist()
        blocks.append((user, f"u{(user * 7) % users}", items, ratings, (size + 1) // 2))
    return blocks


BLOCKS = random_blocks()


def frame(spark: SparkSession, rows: list[Block]) -> DataFrame:
    return spark.createDataFrame(rows, SCHEMA)


def collected(blocks: DataFrame, **changes: Any) -> CollectedPool:
    how = {"most_reviewers": 1000, "size": 5, "all_ratings": False, "middle": 3.0, "seed": 3,
           **changes}  # fmt: skip
    return collect_pool(blocks, **how)  # type: ignore[arg-type]


def content(pool: ReviewerPool) -> list[bytes]:
    parts = (pool.ends, pool.items, pool.ratings, pool.missing, pool.users, pool.keys)
    return [part.tobytes() for part in parts]


def shown(found: CollectedPool, number: int) -> dict[int, float]:
    pool = found.pool
    own = slice(pool.ends[number], pool.ends[number + 1])
    assert (np.diff(pool.items[own]) > 0).all()
    return dict(zip(pool.items[own].tolist(), pool.ratings[own].tolist(), strict=True))


@pytest.mark.parametrize("all_ratings", [False, True])
def test_reviewers_show_their_ratings_about_the_middle(
    spark: SparkSession, all_ratings: bool
) -> None:
    found = collected(frame(spark, BLOCKS).repartition(5), all_ratings=all_ratings)
    by_id = sorted(BLOCKS, key=lambda block: block[1])
    assert found.user_ids == [block[1] for block in by_id]
    assert found.n_train == [block[4] for block in by_id]
    assert found.pool.users.tolist() == [block[0] for block in by_id]
    assert found.group_size == len(BLOCKS)
    for number, (_, _, items, ratings, n_train) in enumerate(by_id):
        n = len(items) if all_ratings else n_train
        expected = {i: r - 3.0 for i, r in zip(items[:n], ratings[:n], strict=True)}
        assert shown(found, number) == expected
        assert found.medians[number] == np.median(ratings[:n])
        assert found.pool.missing[number] == np.median(ratings[:n]) - 3.0
    assert found.greatest_value == 2.0


def test_held_out_ratings_and_the_partitioning_change_nothing(spark: SparkSession) -> None:
    before = frame(spark, BLOCKS)
    changed = [(*b[:3], b[3][: b[4]] + [9.5] * (len(b[3]) - b[4]), b[4]) for b in BLOCKS]
    assert changed != BLOCKS
    one = collected(before, most_reviewers=20)
    assert content(one.pool) == content(collected(before.repartition(7), most_reviewers=20).pool)
    other = collected(frame(spark, changed), most_reviewers=20)
    assert content(one.pool) == content(other.pool)


def test_a_sample_of_the_group_by_hash(spark: SparkSession) -> None:
    some = collected(frame(spark, BLOCKS), most_reviewers=20)
    assert (len(some.user_ids), some.group_size) == (20, 60)
    # a user who leaves does not change the others
    left = [block for block in BLOCKS if block[1] != some.user_ids[4]]
    fewer = collected(frame(spark, left), most_reviewers=20)
    assert set(some.user_ids) - set(fewer.user_ids) == {some.user_ids[4]}
    other_seed = collected(frame(spark, BLOCKS), most_reviewers=20, seed=4)
    assert other_seed.user_ids != some.user_ids


@pytest.mark.parametrize(("least", "most"), [(None, None), (4, None), (None, 6), (4, 6)])
def test_an_activity_group_counts_all_ratings(
    spark: SparkSession, least: int | None, most: int | None
) -> None:
    group = activity_group(frame(spark, BLOCKS), least, most).collect()
    expected = {b[1] for b in BLOCKS if (least or 0) <= len(b[2]) <= (most or 99)}
    assert {row["user_id"] for row in group} == expected


def test_nobody_makes_an_empty_pool(spark: SparkSession) -> None:
    found = collected(activity_group(frame(spark, BLOCKS), 1000, None))
    assert (found.group_size, found.user_ids) == (0, [])


def test_medians_of_rows() -> None:
    rng = np.random.default_rng(2)
    rows = [rng.normal(size=n) for n in (1, 2, 3, 8, 9)]
    ends = np.cumsum([0, *map(len, rows)])
    assert_array_equal(row_medians(np.concatenate(rows), ends), [np.median(row) for row in rows])
