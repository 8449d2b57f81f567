"""Splits against their twins: complete, disjoint, and in the promised order."""

from __future__ import annotations

from collections import Counter

import pytest
from block_twins import Rating, id_key, spark_hash, split
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import PrepareConfig
from spark_rank.data.splits import goes_by_time, presentation, training_size

SPLITS = [
    PrepareConfig(),
    PrepareConfig(train_share=0.07, timestamps=True),
    PrepareConfig(train_share=1.0),
    PrepareConfig(split="temporal", train_share=0.8),
    PrepareConfig(split="temporal", timestamps=True),
    PrepareConfig(split="leave_last"),
    PrepareConfig(split="leave_last", leave_last=4),
    *[PrepareConfig(split="k_fold", folds=3, fold=fold) for fold in (1, 2, 3)],
    PrepareConfig(split="k_fold", folds=2, fold=2),
]
# few different times, so that ties occur
POPULATIONS = st.lists(
    st.dictionaries(
        st.integers(0, 40), st.tuples(st.integers(1, 5), st.integers(0, 4)), min_size=1
    ),
    min_size=1,
    max_size=12,
)


def item_name(item: int) -> str:
    # longer than 32 bytes now and then: the hash has a second way for these
    return f"item-{item}" * (1 + item % 5)


def arranged(
    spark: SparkSession, users: dict[str, list[Rating]], cases: list[PrepareConfig], seed: int
) -> list[Row]:
    """Return every user's entries and n_train in all cases, as columns e0, n0, e1, n1, …"""
    rows = [
        (user_id, [(item_name(item), item, rating, time) for _, item, rating, time in own])
        for user_id, own in users.items()
    ]
    raw = "array<struct<name: string, item: int, rating: float, timestamp: bigint>>"
    frame = spark.createDataFrame(rows, f"user_id string, raw {raw}").coalesce(1)
    entry = F.transform(
        "raw",
        lambda e: F.struct(
            F.xxhash64(e["name"]).alias("item_key"), e["item"].alias("item"),
            e["rating"].alias("rating"), e["timestamp"].alias("timestamp"),
        ),
    )  # fmt: skip
    columns = []
    for number, case in enumerate(cases):
        entries, n_train = presentation(F.col("entries"), F.xxhash64("user_id"), case, seed)
        columns += [entries.alias(f"e{number}"), n_train.alias(f"n{number}")]
    return frame.withColumn("entries", entry).select("user_id", *columns).collect()


def as_users(population: list[dict[int, tuple[int, int]]]) -> dict[str, list[Rating]]:
    return {
        f"user {user}": [(user, item, float(r), time) for item, (r, time) in own.items()]
        for user, own in enumerate(population)
    }


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(population=POPULATIONS, seed=st.integers(0, 2**31 - 1))
def test_every_split_is_its_twin(
    spark: SparkSession, population: list[dict[int, tuple[int, int]]], seed: int
) -> None:
    users = as_users(population)
    names = {item: item_name(item) for item in range(41)}
    for row in arranged(spark, users, SPLITS, seed):
        own = users[row["user_id"]]
        for number, case in enumerate(SPLITS):
            train, held_out = split(own, row["user_id"], names, case, seed)
            found = [(e["item"], e["rating"]) for e in row[f"e{number}"]]
            n_train = row[f"n{number}"]
            assert found[:n_train] == [r[1:3] for r in train], case
            assert found[n_train:] == [r[1:3] for r in held_out], case
            # complete and disjoint: every item once, on one side
            assert Counter(item for item, _ in found) == Counter(r[1] for r in own)
            assert 1 <= n_train <= len(own)


def test_folds_hold_out_every_rating_once_and_are_of_equal_size(spark: SparkSession) -> None:
    folds = 4
    cases = [PrepareConfig(split="k_fold", folds=folds, fold=f + 1) for f in range(folds)]
    sizes = [2, 3, 4, 5, 9] * 40
    population = [{item: (1, 0) for item in range(size)} for size in sizes]
    totals = Counter[int]()
    for row in arranged(spark, as_users(population), cases, 5):
        held_out = [row[f"e{f}"][row[f"n{f}"] :] for f in range(folds)]
        items = sorted(entry["item"] for part in held_out for entry in part)
        assert items == list(range(len(row["e0"])))
        lengths = [len(part) for part in held_out]
        assert max(lengths) - min(lengths) <= 1
        totals.update(dict(enumerate(lengths)))
    expected = sum(sizes) / folds
    # without a start of its own for every user the first fold would hold 320 and the last 160
    assert all(abs(total - expected) < 0.15 * expected for total in totals.values())


def test_a_split_by_time_never_learns_from_the_future(spark: SparkSession) -> None:
    cases = [case for case in SPLITS if goes_by_time(case)]
    population = [{item: (1, (7 * item + user) % 11) for item in range(30)} for user in range(20)]
    for row in arranged(spark, as_users(population), cases, 1):
        for number in range(len(cases)):
            times = [entry["timestamp"] for entry in row[f"e{number}"]]
            assert times == sorted(times)
            assert len(set(times)) > 1


def test_the_hash_of_the_twin_is_sparks(spark: SparkSession) -> None:
    texts = ["", "a", "abcd", "12345678", "x" * 31, "y" * 32, "Jürgen" * 20]
    frame = spark.createDataFrame([(text,) for text in texts], "t string")
    found = {r["t"]: r["h"] for r in frame.select("t", F.xxhash64("t").alias("h")).collect()}
    assert found == {text: spark_hash(text.encode()) for text in texts}
    nested = frame.select("t", F.xxhash64(F.lit("k"), F.xxhash64("t")).alias("h")).collect()
    assert {r["t"]: r["h"] for r in nested} == {t: spark_hash(b"k", id_key(t)) for t in texts}


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
