"""Panels: the choice of reviewers, missing ratings, and that held-out ratings are not used."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal
from pyspark.sql import DataFrame, SparkSession

from spark_rank.features.offset import item_offsets
from spark_rank.features.panel import covering_panel, fill_matrix, most_active_panel

SCHEMA = "user int, user_id string, items array<int>, ratings array<float>, n_train int"
# users 0 and 2 tie in training ratings; user 1 has the most ratings, but few for training
BLOCKS = [
    (0, "a", [3, 1, 4], [5.0, 1.0, 2.0], 2),
    (1, "b", [0, 1, 2, 3, 4], [1.0, 1.0, 1.0, 5.0, 5.0], 1),
    (2, "c", [2, 3, 0], [4.0, 3.0, 5.0], 2),
    (3, "d", [0, 1, 2], [2.0, 4.0, 5.0], 3),
]


def frame(spark: SparkSession, rows: list[tuple[object, ...]]) -> DataFrame:
    return spark.createDataFrame(rows, SCHEMA)


def test_the_most_active_by_training_ratings_ties_by_number(spark: SparkSession) -> None:
    panel = most_active_panel(frame(spark, BLOCKS).repartition(3), 3, n_items=5, middle=3.0)
    assert (panel.users, panel.user_ids, panel.n_train) == ([3, 0, 2], ["d", "a", "c"], [3, 2, 2])
    assert_array_equal(panel.medians, [4.0, 3.0, 3.5])
    expected = np.array(
        [[-1, 0, 0.5], [1, -2, 0.5], [2, 0, 1], [1, 2, 0], [1, 0, 0.5]], dtype=np.float32
    )
    assert_array_equal(panel.matrix, expected)


def test_a_panel_larger_than_the_users_is_all_users(spark: SparkSession) -> None:
    assert most_active_panel(frame(spark, BLOCKS), 99, 5, middle=3.0).matrix.shape == (5, 4)


def test_a_covering_panel_by_training_ratings_alone(spark: SparkSession) -> None:
    # demand: items 0, 1, 2, 3 have 2, 2, 2, 2 training ratings, item 4 none
    panel = covering_panel(frame(spark, BLOCKS).repartition(3), 3, n_items=5, middle=3.0)
    # d covers three items; then a and c each add one new item and half of another
    assert (panel.users, panel.user_ids, panel.n_train) == ([3, 0, 2], ["d", "a", "c"], [3, 2, 2])
    assert_array_equal(panel.matrix, most_active_panel(frame(spark, BLOCKS), 3, 5, 3.0).matrix)
    # among the two most active only
    assert covering_panel(frame(spark, BLOCKS), 3, 5, 3.0, most_candidates=2).users == [3, 0]
    rows = [
        (0, "a", [0, 1, 2], [1.0, 2.0, 3.0], 3), (1, "b", [0, 1, 4], [1.0, 2.0, 3.0], 2),
        (2, "c", [3, 0], [4.0, 5.0], 1), (3, "d", [3], [4.0], 1),
    ]  # fmt: skip
    # b's item 4 is held out: what b adds is half of items 0 and 1, as much as c's item 3
    assert covering_panel(frame(spark, rows), 2, 5, 3.0).user_ids == ["a", "b"]
    changed = [
        (*row[:3], [*row[3][: row[4]], *[9.0] * (len(row[3]) - row[4])], row[4]) for row in rows
    ]
    assert_array_equal(
        covering_panel(frame(spark, rows), 2, 5, 3.0).matrix,
        covering_panel(frame(spark, changed), 2, 5, 3.0).matrix,
    )


def test_fill_matrix_is_what_a_loop_does() -> None:
    rng = np.random.default_rng(0)
    filled = rng.random((30, 6)) < 0.3
    filled[0] = True
    items, columns = np.nonzero(filled)
    shuffled = rng.permutation(len(items))
    items, columns = items[shuffled], columns[shuffled]
    ratings = rng.integers(1, 6, len(items)).astype(float)
    middle = 5.5  # the middle of a scale whose upper half nobody uses
    matrix, medians, missing = fill_matrix(columns, items, ratings, (30, 6), middle)
    for j in range(6):
        own = ratings[columns == j]
        assert medians[j] == np.median(own)
        assert missing[j] == medians[j] - middle
        for i in range(30):
            given = ratings[(columns == j) & (items == i)]
            assert matrix[i, j] == (given[0] if len(given) else medians[j]) - middle


def test_offsets_are_shrunken_means_of_centred_ratings(spark: SparkSession) -> None:
    items = spark.createDataFrame([(i, f"i{i}") for i in range(5)], "item int, item_id string")
    rows = item_offsets(frame(spark, BLOCKS), items, shrinkage=2.0).collect()
    found = {row["item"]: row["offset"] for row in rows}
    sums = dict.fromkeys(range(5), 0.0)
    counts = dict.fromkeys(range(5), 0)
    for _, _, block_items, ratings, n_train in BLOCKS:
        mean = np.mean(ratings[:n_train])
        for item, rating in zip(block_items[:n_train], ratings[:n_train], strict=True):
            sums[item] += rating - mean
            counts[item] += 1
    for item in range(5):
        assert abs(found[item] - sums[item] / (counts[item] + 2.0)) < 1e-7
    assert found[4] == 0.0, "rated by nobody in training"


def test_test_ratings_change_no_feature(spark: SparkSession) -> None:
    changed = [
        (user, name, items, ratings[:n] + [1.0 + 4.0 * (r < 3) for r in ratings[n:]], n)
        for user, name, items, ratings, n in BLOCKS
    ]
    assert changed != BLOCKS
    items = spark.createDataFrame([(i, f"i{i}") for i in range(5)], "item int, item_id string")
    before, after = frame(spark, BLOCKS), frame(spark, changed)
    assert_array_equal(
        most_active_panel(before, 3, 5, 3.0).matrix, most_active_panel(after, 3, 5, 3.0).matrix
    )
    assert (
        item_offsets(before, items, 1.0).orderBy("item").collect()
        == item_offsets(after, items, 1.0).orderBy("item").collect()
    )


def test_offsets_do_not_depend_on_the_partitioning(spark: SparkSession) -> None:
    rng = np.random.default_rng(0)
    rows = [
        (u, str(u), list(range(5)), rng.normal(3, 1, 5).astype(np.float32).tolist(), 5)
        for u in range(200)
    ]
    items = spark.createDataFrame([(i, f"i{i}") for i in range(5)], "item int, item_id string")

    def offsets(parts: int) -> list[float]:
        made = item_offsets(frame(spark, rows).repartition(parts), items, 1.0)
        return [row["offset"] for row in made.orderBy("item").collect()]

    assert offsets(1) == offsets(3) == offsets(16)
