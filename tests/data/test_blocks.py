"""User blocks have every rating once, with a fixed split."""

from __future__ import annotations

from typing import Any

from block_twins import Rating, split
from chispa import assert_df_equality
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import PrepareConfig
from spark_rank.data.blocks import training_part, user_blocks, with_held_back
from spark_rank.tables.user_buckets import bucket_of

DEFAULT = PrepareConfig(buckets=4)
RATINGS: list[Rating] = [
    (user, item, float((user * item) % 5 + 1), 100 * user + item)
    for user in range(12)
    for item in range(0, 3 + 2 * user)
    if (user + item) % 2 == 0
] + [(12, 5, 3.0, None)]


def block_frame(
    spark: SparkSession,
    *,
    ratings: list[Rating] = RATINGS,
    settings: PrepareConfig = DEFAULT,
    seed: int = 1,
    parts: int = 2,
    shift: int = 0,
    by_bucket: bool = False,
) -> DataFrame:
    """Make the blocks; `shift` renumbers users and items, as newcomers would."""
    schema = "user int, item int, rating float, timestamp bigint"
    numbered = [(u + shift, i + shift, r, t) for u, i, r, t in ratings]
    users = [(f"id{u}", u + shift) for u in range(13)]
    items = [(f"i{i}", i + shift) for i in range(30)]
    return user_blocks(
        spark.createDataFrame(numbered, schema).repartition(parts),
        spark.createDataFrame(users, "user_id string, user int"),
        spark.createDataFrame(items, "item_id string, item int"),
        settings,
        seed,
        by_bucket=by_bucket,
    )


def blocks(spark: SparkSession, **arguments: Any) -> list[Row]:
    return sorted(block_frame(spark, **arguments).collect(), key=lambda row: row["user"])


def test_newcomers_do_not_change_the_split_of_the_others(spark: SparkSession) -> None:
    before, after = blocks(spark), blocks(spark, shift=1000)
    assert [r["user_id"] for r in after] == [r["user_id"] for r in before]
    assert [[i - 1000 for i in r["items"]] for r in after] == [r["items"] for r in before]
    assert [r["n_train"] for r in after] == [r["n_train"] for r in before]


def test_every_rating_is_in_its_users_block_once(spark: SparkSession) -> None:
    found = [
        (row["user"], *entry)
        for row in blocks(spark, settings=PrepareConfig(timestamps=True))
        for entry in zip(row["items"], row["ratings"], row["timestamps"], strict=True)
    ]
    assert sorted(found, key=lambda e: e[:2]) == sorted(RATINGS, key=lambda e: e[:2])
    assert all(row["user_id"] == f"id{row['user']}" for row in blocks(spark))


def test_partitions_do_not_change_a_block_but_the_seed_does(spark: SparkSession) -> None:
    reference = blocks(spark)
    assert blocks(spark, parts=9) == reference
    without = [name for name in reference[0].asDict() if name != "bucket"]
    other = blocks(spark, settings=PrepareConfig(buckets=1))
    assert [[r[n] for n in without] for r in other] == [[r[n] for n in without] for r in reference]
    assert [r["items"] for r in blocks(spark, seed=2)] != [r["items"] for r in reference]


def test_partitions_do_not_change_a_global_split(spark: SparkSession) -> None:
    for settings in (
        PrepareConfig(split="global", train_share=0.6, buckets=4),
        PrepareConfig(split="global_k_fold", folds=3, fold=2, buckets=4),
    ):
        reference = blocks(spark, settings=settings)
        assert blocks(spark, settings=settings, parts=7) == reference
        assert len({row["n_train"] / len(row["items"]) for row in reference}) > 3


def test_ratings_that_come_by_bucket_stay_where_they_are(spark: SparkSession) -> None:
    # all in one partition: no bucket is in two
    found = block_frame(spark, parts=1, by_bucket=True)
    assert found.rdd.getNumPartitions() == 1
    in_order = block_frame(spark).orderBy("bucket", "user")
    assert_df_equality(found, in_order)


def test_buckets_follow_from_the_ids(spark: SparkSession) -> None:
    for row in blocks(spark):
        assert row["bucket"] == bucket_of(row["user_id"], DEFAULT.buckets)


def test_the_split_is_not_in_the_order_of_items(spark: SparkSession) -> None:
    heavy = blocks(spark)[-2]
    assert heavy["items"] != sorted(heavy["items"])


def test_a_block_holds_its_split(spark: SparkSession) -> None:
    names = {item: f"i{item}" for item in range(30)}
    for settings in (PrepareConfig(), PrepareConfig(split="leave_last", leave_last=2)):
        timed = [rating for rating in RATINGS if rating[3] is not None]
        for row in blocks(spark, ratings=timed, settings=settings):
            own = [rating for rating in timed if rating[0] == row["user"]]
            train, held_out = split(own, row["user_id"], names, settings, 1)
            assert row["items"] == [rating[1] for rating in train + held_out]
            assert row["n_train"] == len(train)


def test_times_are_kept_where_wanted(spark: SparkSession) -> None:
    time_of = {(user, item): time for user, item, _, time in RATINGS}
    for row in blocks(spark, settings=PrepareConfig(timestamps=True)):
        assert row["timestamps"] == [time_of[row["user"], item] for item in row["items"]]
    assert all(row["timestamps"] is None for row in blocks(spark))


def test_a_user_without_ratings_has_no_block(spark: SparkSession) -> None:
    without = [rating for rating in RATINGS if rating[0] != 5]
    assert {r["user"] for r in blocks(spark, ratings=without)} == set(range(13)) - {5}


def test_a_bucket_is_a_partition(spark: SparkSession) -> None:
    frame = block_frame(spark, settings=PrepareConfig(buckets=7))
    placed = frame.select("bucket", F.spark_partition_id().alias("partition")).collect()
    assert all(row["bucket"] == row["partition"] for row in placed)
    assert len({row["bucket"] for row in placed}) > 1


def test_features_see_the_training_part_only(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(1, [7, 8, 9], [1.0, 2.0, 3.0], 2), (2, [5], [4.0], 1)],
        "user int, items array<int>, ratings array<float>, n_train int",
    )
    seen = sorted(tuple(row) for row in training_part(frame, "user").collect())
    assert seen == [(1, 7, 1.0), (1, 8, 2.0), (2, 5, 4.0)]


def test_what_is_held_back_is_no_longer_for_training(spark: SparkSession) -> None:
    rows = [
        (user, list(range(size)), [float(i) for i in range(size)], n_train)
        for user, size, n_train in ((1, 40, 20), (2, 12, 6), (3, 9, 5), (4, 40, 20))
    ]
    frame = spark.createDataFrame(
        rows, "user int, items array<int>, ratings array<float>, n_train int"
    )
    chosen = spark.createDataFrame([(1,), (2,), (3,)], "user int")
    found = with_held_back(frame, chosen, parts=5, least_training=4).orderBy("user").collect()
    # a fifth, two at least; four stay to learn from; who is not chosen stays as he is
    assert [(row["n_train"], len(row["items"])) for row in found] == [
        (16, 20), (4, 6), (4, 5), (20, 40),
    ]  # fmt: skip
    for row in found:
        assert row["items"] == list(range(len(row["items"]))) == row["ratings"]
    seen = training_part(with_held_back(frame, chosen, 5, 4).where("user = 1")).collect()
    assert sorted(row["item"] for row in seen) == list(range(16))
