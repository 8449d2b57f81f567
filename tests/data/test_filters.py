"""Filters, against naive twins: thresholds, rounds to a fixed point, samples, counts."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from block_twins import Rating, filtered, in_share
from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import FilterConfig, PrepareConfig
from spark_rank.data.blocks import user_blocks
from spark_rank.data.filters import FilterStep, Keep, filter_ratings, settled
from spark_rank.errors import InputDataError

SCHEMA = "user int, item int, rating float, timestamp bigint"
USERS, ITEMS = 40, 30


def population(seed: int) -> list[Rating]:
    draw = random.Random(seed)
    return [
        (user, item, float(1 + (user + item) % 5), 10 * user + item)
        for user in range(USERS)
        for item in range(ITEMS)
        # some users and items are far more active than others
        if draw.random() < ((user + 1) / USERS) ** 0.7 * ((item + 1) / ITEMS) ** 0.5
    ]


@pytest.fixture
def keep(spark: SparkSession, tmp_path: Path) -> Keep:
    def write(frame: DataFrame, name: str) -> DataFrame:
        path = str(tmp_path / name)
        frame.write.mode("overwrite").parquet(path)
        return spark.read.parquet(path)

    return write


def users_table(spark: SparkSession, users: int = USERS) -> DataFrame:
    return spark.createDataFrame([(u, f"id{u}") for u in range(users)], "user int, user_id string")


def apply(
    spark: SparkSession,
    keep: Keep,
    ratings: list[Rating],
    settings: PrepareConfig,
    *,
    seed: int = 3,
    parts: int = 2,
) -> tuple[set[Rating], list[FilterStep]]:
    frame = spark.createDataFrame(ratings, SCHEMA).repartition(parts)
    left, steps = filter_ratings(frame, users_table(spark), settings, seed, keep)
    found = {tuple(row) for row in left.select("user", "item", "rating", "timestamp").collect()}
    if not steps:
        return found, steps
    activity = steps[-1].after
    assert activity.ratings == len(found)
    assert activity.users == len({r[0] for r in found})
    assert activity.items == len({r[1] for r in found})
    by_user = {row["user"]: row["n"] for row in activity.by_user.collect()}
    assert by_user == {u: sum(r[0] == u for r in found) for u in {r[0] for r in found}}
    return found, steps


GROUP = [FilterConfig(user_min=5, user_max=12)]
DENSE = [FilterConfig(user_min=6, item_min=12)]
ONE_AFTER_THE_OTHER = [FilterConfig(user_min=9), FilterConfig(item_min=12)]
POPULAR_TAIL = [FilterConfig(item_max=8), FilterConfig(user_min=2, item_min=2)]


@pytest.mark.parametrize(
    ("filters", "rounds", "parts"),
    [
        pytest.param(GROUP, 1, 1, marks=pytest.mark.slow),
        (DENSE, 2, 3),
        pytest.param(POPULAR_TAIL, 20, 3, marks=pytest.mark.slow),
        (ONE_AFTER_THE_OTHER, 20, 1),
        pytest.param(ONE_AFTER_THE_OTHER, 20, 16, marks=pytest.mark.slow),
    ],
)
def test_filters_are_their_twins(
    spark: SparkSession, keep: Keep, filters: list[FilterConfig], rounds: int, parts: int
) -> None:
    ratings = population(1)
    settings = PrepareConfig(filters=filters, filter_rounds=rounds)
    found, steps = apply(spark, keep, ratings, settings, parts=parts)
    expected, sizes = filtered(ratings, filters, rounds)
    assert found == expected
    assert 0 < len(found) < len(ratings)
    after = [(step.after.ratings, step.after.users, step.after.items) for step in steps]
    assert after == sizes
    assert [step.round for step in steps] == [
        1 + number // len(filters) for number in range(len(sizes))
    ]
    before = [len(ratings), *[size[0] for size in sizes]]
    dropped = [step.facts().ratings_dropped for step in steps]
    assert dropped == [a - b for a, b in pairwise(before)]


def test_a_fixed_point_meets_every_threshold_and_is_said_to_be_one(
    spark: SparkSession, keep: Keep
) -> None:
    filters, ratings = ONE_AFTER_THE_OTHER, population(2)
    once, steps = apply(spark, keep, ratings, PrepareConfig(filters=filters))
    # the data are such that one round is not enough
    assert not settled(steps)
    assert min(sum(r[0] == user for r in once) for user in {r[0] for r in once}) < 9
    rounds = PrepareConfig(filters=filters, filter_rounds=50)
    found, steps = apply(spark, keep, ratings, rounds)
    assert settled(steps)
    assert steps[-1].round < 50
    assert min(sum(r[0] == user for r in found) for user in {r[0] for r in found}) >= 9
    assert min(sum(r[1] == item for r in found) for item in {r[1] for r in found}) >= 12


def test_no_filter_keeps_everything(spark: SparkSession, keep: Keep) -> None:
    ratings = population(3)
    found, steps = apply(spark, keep, ratings, PrepareConfig(filter_rounds=9))
    assert found == set(ratings)
    assert steps == []
    assert settled(steps)


def test_a_sample_of_users_is_its_twin_and_part_of_a_larger_one(
    spark: SparkSession, keep: Keep
) -> None:
    ratings = population(4)
    samples = []
    for share in (0.25, 0.5, 0.9):
        found, steps = apply(spark, keep, ratings, PrepareConfig(user_share=share))
        assert found == {r for r in ratings if in_share(f"id{r[0]}", share, 3)}
        assert steps[-1].label == f"user_share: {share:g}"
        samples.append(found)
    assert samples[0] < samples[1] < samples[2] < set(ratings)
    other, _ = apply(spark, keep, ratings, PrepareConfig(user_share=0.5), seed=4)
    assert other != samples[1]


def test_thresholds_are_counted_before_the_sample(spark: SparkSession, keep: Keep) -> None:
    ratings = population(1)
    settings = PrepareConfig(filters=DENSE, user_share=0.5)
    found, steps = apply(spark, keep, ratings, settings)
    dense, _ = filtered(ratings, DENSE, 1)
    assert found == {r for r in dense if in_share(f"id{r[0]}", 0.5, 3)}
    assert [step.round for step in steps] == [1, 0]


def test_an_empty_result_names_the_filter(spark: SparkSession, keep: Keep) -> None:
    settings = PrepareConfig(filters=[FilterConfig(user_min=2), FilterConfig(item_min=1000)])
    with pytest.raises(InputDataError, match=r"prepare.filters\[1\] \(item_min: 1000\)") as caught:
        apply(spark, keep, population(1), settings)
    assert caught.value.exit_code == 3
    with pytest.raises(InputDataError, match=r"prepare.user_share .* leaves nothing"):
        apply(spark, keep, population(1), PrepareConfig(user_share=1e-12))


def test_what_is_filtered_out_changes_no_other_block(spark: SparkSession, keep: Keep) -> None:
    settings = PrepareConfig(filters=[FilterConfig(user_min=5)], filter_rounds=3, buckets=3)
    old = population(5)
    # twenty more users, each with a rating of an item of his or her own and one of a known item
    new = [(USERS + n, item, 3.0, 0) for n in range(20) for item in (ITEMS + n, n)]

    def made(ratings: list[Rating], users: int, items: int) -> list[tuple[object, ...]]:
        frame = spark.createDataFrame(ratings, SCHEMA)
        named = users_table(spark, users)
        left, _ = filter_ratings(frame, named, settings, 0, keep)
        ids = spark.createDataFrame(
            [(i, f"i{i}") for i in range(items)], "item int, item_id string"
        )
        blocks = user_blocks(left, named, ids, settings, 0)
        return sorted(tuple(row) for row in blocks.collect())

    assert made(old + new, USERS + 20, ITEMS + 20) == made(old, USERS, ITEMS)
