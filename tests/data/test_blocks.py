"""User blocks: nothing lost, a fixed split, nothing on both sides."""

from __future__ import annotations

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from spark_rank.data.blocks import training_part, training_size, user_blocks

RATINGS = [
    (user, item, float((user * item) % 5 + 1), 100 * user + item)
    for user in range(12)
    for item in range(0, 3 + 2 * user)
    if (user + item) % 2 == 0
] + [(12, 5, 3.0, None)]


def blocks(
    spark: SparkSession,
    *,
    seed: int = 1,
    buckets: int = 4,
    parts: int = 2,
    shift: int = 0,
) -> list[Row]:
    """Make the blocks; `shift` renumbers users and items, as newcomers would."""
    schema = "user int, item int, rating float, timestamp bigint"
    numbered = [(u + shift, i + shift, r, t) for u, i, r, t in RATINGS]
    ratings = spark.createDataFrame(numbered, schema).repartition(parts)
    users = [(f"id{u}", u + shift) for u in range(13)]
    items = [(f"i{i}", i + shift) for i in range(30)]
    frame = user_blocks(
        ratings,
        spark.createDataFrame(users, "user_id string, user int"),
        spark.createDataFrame(items, "item_id string, item int"),
        seed=seed,
        train_share=0.5,
        buckets=buckets,
    )
    return sorted(frame.collect(), key=lambda row: row["user"])


def test_newcomers_do_not_change_the_split_of_the_others(spark: SparkSession) -> None:
    before, after = blocks(spark), blocks(spark, shift=1000)
    assert [r["user_id"] for r in after] == [r["user_id"] for r in before]
    assert [[i - 1000 for i in r["items"]] for r in after] == [r["items"] for r in before]
    assert [r["n_train"] for r in after] == [r["n_train"] for r in before]


def test_every_rating_is_in_its_users_block_once(spark: SparkSession) -> None:
    found = [
        (row["user"], *entry)
        for row in blocks(spark)
        for entry in zip(row["items"], row["ratings"], row["timestamps"], strict=True)
    ]
    assert sorted(found, key=lambda e: e[:2]) == sorted(RATINGS, key=lambda e: e[:2])
    assert all(row["user_id"] == f"id{row['user']}" for row in blocks(spark))


def test_partitions_do_not_change_a_block_but_the_seed_does(spark: SparkSession) -> None:
    reference = blocks(spark)
    assert blocks(spark, parts=9) == reference
    without = [name for name in reference[0].asDict() if name != "bucket"]
    other = blocks(spark, buckets=1)
    assert [[r[n] for n in without] for r in other] == [[r[n] for n in without] for r in reference]
    assert [r["items"] for r in blocks(spark, seed=2)] != [r["items"] for r in reference]


def test_the_split_is_not_in_the_order_of_items(spark: SparkSession) -> None:
    heavy = blocks(spark)[-2]
    assert heavy["items"] != sorted(heavy["items"])


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.5, {1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 101: 51}),
        (0.9, {1: 1, 2: 1, 3: 2, 10: 9, 11: 10}),
        (0.01, {1: 1, 2: 1, 100: 1}),
        (1.0, {1: 1, 2: 2, 7: 7}),
        (0.55, {200: 110}),
        (0.07, {100: 7}),
    ],
)
def test_training_sizes(spark: SparkSession, share: float, expected: dict[int, int]) -> None:
    frame = spark.createDataFrame([(n,) for n in expected], "n int")
    rows = frame.select("n", training_size(F.col("n"), share).alias("size")).collect()
    assert {row["n"]: row["size"] for row in rows} == expected


def test_features_see_the_training_part_only(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(1, [7, 8, 9], [1.0, 2.0, 3.0], 2), (2, [5], [4.0], 1)],
        "user int, items array<int>, ratings array<float>, n_train int",
    )
    seen = sorted(tuple(row) for row in training_part(frame, "user").collect())
    assert seen == [(1, 7, 1.0), (1, 8, 2.0), (2, 5, 4.0)]
