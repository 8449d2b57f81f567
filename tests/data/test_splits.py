"""Splits, against naive twins: complete, disjoint and in the documented order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from block_twins import Rating, id_key, short_number, spark_hash, split
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.config import PrepareConfig
from spark_rank.data.splits import (
    SplitKeys,
    goes_by_time,
    may_leave_users_without_training,
    presentation,
    split_keys,
    training_sizes,
)

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
    PrepareConfig(split="global", train_share=0.9),
    PrepareConfig(split="global", train_share=0.3),
    PrepareConfig(split="global", train_share=1.0),
    *[PrepareConfig(split="global_k_fold", folds=3, fold=fold) for fold in (1, 2, 3)],
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


def keys_of(seed: int) -> SplitKeys:
    return SplitKeys(*(spark_hash(short_number(seed), name) for name in (b"split", b"fold")))


def key(name: str) -> int:
    return spark_hash(name.encode())


def arranged(
    users: dict[str, list[Rating]], settings: PrepareConfig, seed: int
) -> dict[str, tuple[list[Rating], list[Rating]]]:
    """Return every user's two parts; all users are arranged in one call."""
    everything = [rating for own in users.values() for rating in own]
    ends = np.cumsum([0, *map(len, users.values())])
    items = np.array([rating[1] for rating in everything], np.int32)
    order, n_train = presentation(
        ends,
        np.array([key(name) for name in users]),
        np.array([key(item_name(rating[1])) for rating in everything]),
        items,
        np.array([rating[3] for rating in everything]),
        settings,
        keys_of(seed),
    )
    found = {}
    for place, name in enumerate(users):
        rows = [everything[row] for row in order[ends[place] : ends[place + 1]]]
        found[name] = rows[: n_train[place]], rows[n_train[place] :]
    return found


def as_users(population: list[dict[int, tuple[int, int]]]) -> dict[str, list[Rating]]:
    return {
        f"user {user}": [(user, item, float(r), time) for item, (r, time) in own.items()]
        for user, own in enumerate(population)
    }


@settings(max_examples=40)
@given(population=POPULATIONS, seed=st.integers(-(2**31), 2**31 - 1), case=st.sampled_from(SPLITS))
def test_every_split_is_its_twin(
    population: list[dict[int, tuple[int, int]]], seed: int, case: PrepareConfig
) -> None:
    users = as_users(population)
    names = {item: item_name(item) for item in range(41)}
    for name, (train, held_out) in arranged(users, case, seed).items():
        assert (train, held_out) == split(users[name], name, names, case, seed)
        # complete and disjoint: every item once, on one side
        assert sorted(train + held_out) == sorted(users[name])
        assert train or may_leave_users_without_training(case)


@given(population=POPULATIONS, seed=st.integers(0, 9), folds=st.integers(2, 6))
@settings(max_examples=20)
def test_global_folds_part_the_ratings(
    population: list[dict[int, tuple[int, int]]], seed: int, folds: int
) -> None:
    users = as_users(population)
    found = []
    for fold in range(1, folds + 1):
        case = PrepareConfig(split="global_k_fold", folds=folds, fold=fold)
        found += [r for _, held_out in arranged(users, case, seed).values() for r in held_out]
    assert sorted(found) == sorted(rating for own in users.values() for rating in own)


def test_a_global_share_is_that_of_all_ratings() -> None:
    users = as_users([{item: (1, 0) for item in range(size)} for size in [1, 2, 5, 41] * 60])
    everything = sum(map(len, users.values()))
    for share in (0.1, 0.5, 0.9):
        parts = arranged(users, PrepareConfig(split="global", train_share=share), 3).values()
        train = sum(len(part) for part, _ in parts)
        # four standard deviations of as many draws
        assert abs(train - share * everything) < 4 * (share * (1 - share) * everything) ** 0.5
        if share == 0.1:
            assert any(not part for part, _ in parts)


def test_a_given_split_keeps_the_order_of_the_hash() -> None:
    rng = np.random.default_rng(2)
    ends = np.array([0, 7, 7, 30])
    keys = np.arange(3), np.arange(30) * 7
    rest = (np.arange(30, dtype=np.int32), np.zeros(30, np.int64))
    whole, _ = presentation(ends, *keys, *rest, PrepareConfig(train_share=1.0), SplitKeys(1, 2))
    held_out = rng.random(30) < 0.4
    order, n_train = presentation(
        ends, *keys, *rest, PrepareConfig(split="given"), SplitKeys(1, 2), held_out
    )
    for user in range(3):
        own = whole[ends[user] : ends[user + 1]]
        expected = [*own[~held_out[own]], *own[held_out[own]]]
        assert order[ends[user] : ends[user + 1]].tolist() == expected
        assert n_train[user] == (~held_out[own]).sum()
    with pytest.raises(ValueError, match="needs the ratings"):
        presentation(ends, *keys, *rest, PrepareConfig(split="given"), SplitKeys(1, 2))


def test_folds_hold_out_every_rating_once_and_are_of_equal_size() -> None:
    folds = 4
    sizes = [2, 3, 4, 5, 9] * 40
    users = as_users([{item: (1, 0) for item in range(size)} for size in sizes])
    cases = [PrepareConfig(split="k_fold", folds=folds, fold=f + 1) for f in range(folds)]
    by_fold = [arranged(users, case, 5) for case in cases]
    totals = Counter[int]()
    for name, own in users.items():
        held_out = [parts[name][1] for parts in by_fold]
        assert sorted(rating for part in held_out for rating in part) == sorted(own)
        lengths = [len(part) for part in held_out]
        assert max(lengths) - min(lengths) <= 1
        totals.update(dict(enumerate(lengths)))
    expected = sum(sizes) / folds
    # without a start of its own for every user the first fold would hold 320 and the last 160
    assert all(abs(total - expected) < 0.15 * expected for total in totals.values())


def test_a_split_by_time_never_learns_from_the_future() -> None:
    population = [{item: (1, (7 * item + user) % 11) for item in range(30)} for user in range(20)]
    for case in SPLITS:
        if goes_by_time(case):
            for train, held_out in arranged(as_users(population), case, 1).values():
                times = [rating[3] or 0 for rating in train + held_out]
                assert times == sorted(times)
                assert len(set(times)) > 1


def test_items_of_one_hash_stand_in_their_order() -> None:
    items = np.array([5, 3, 9, 3, 5], np.int32)
    order, _ = presentation(
        np.array([0, 3, 5]), np.array([1, 2]), np.full(5, 77), items, np.zeros(5, np.int64),
        PrepareConfig(), SplitKeys(1, 2),
    )  # fmt: skip
    assert items[order].tolist() == [3, 5, 9, 3, 5]


def test_the_keys_of_a_seed_are_sparks(spark: SparkSession) -> None:
    assert split_keys(spark, 11) == keys_of(11)


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
def test_training_sizes(share: float, expected: dict[int, int]) -> None:
    sizes = training_sizes(np.array(list(expected)), share)
    assert dict(zip(expected, sizes.tolist(), strict=True)) == expected
