"""Reviewers drawn for a user, and their ratings gathered, against dictionaries and plain ints."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from spark_rank.features.pool import ReviewerPool, id_keys

Ratings = list[dict[int, float]]


def pool_of(rows: Ratings, *, ids: list[str] | None = None, size: int = 3, seed: int = 5) -> (
    ReviewerPool
):  # fmt: skip
    """Make a pool in which reviewer r is user 100 + r, called r unless `ids` name them."""
    ids = ids or [str(r) for r in range(len(rows))]
    ends = np.cumsum([0, *[len(row) for row in rows]])
    return ReviewerPool(
        ends=ends.astype(np.int64),
        items=np.array([i for row in rows for i in sorted(row)], dtype=np.int32),
        ratings=np.array([row[i] for row in rows for i in sorted(row)], dtype=np.float32),
        missing=np.arange(len(rows), dtype=np.float32) / 2,
        users=np.arange(100, 100 + len(rows), dtype=np.int32),
        keys=id_keys(ids),
        size=size,
        seed=seed,
    )


def draw_by_hand(user_id: str, reviewer_id: str, seed: int) -> int:
    """Return SplitMix64's finaliser of two hashes, in Python's own whole numbers."""
    key = hashlib.blake2b(reviewer_id.encode(), digest_size=8).digest()
    seeded = hashlib.blake2b(user_id.encode(), digest_size=8, key=seed.to_bytes(8, "little"))
    bits = int.from_bytes(key, "little") ^ int.from_bytes(seeded.digest(), "little")
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % 2**64
    return bits ^ (bits >> 31)


@st.composite
def sparse(draw: st.DrawFn) -> tuple[Ratings, list[int], list[int]]:
    n_items = draw(st.integers(1, 12))
    item = st.integers(0, n_items - 1)
    rows = draw(st.lists(st.dictionaries(item, st.floats(-5, 5, width=32), min_size=1), min_size=1))
    numbers = st.integers(0, len(rows) - 1)
    return rows, draw(st.lists(item, max_size=30)), draw(st.lists(numbers, unique=True))


@given(sparse())
@settings(max_examples=150)
def test_gathered_ratings_are_those_of_the_dictionaries(
    case: tuple[Ratings, list[int], list[int]],
) -> None:
    rows, items, reviewers = case
    pool = pool_of(rows)
    found = pool.gather(np.array(items, dtype=np.int32), np.array(reviewers, dtype=np.int32))
    assert found.shape == (len(items), len(reviewers))
    for place, item in enumerate(items):
        for column, reviewer in enumerate(reviewers):
            expected = rows[reviewer].get(item, reviewer / 2)
            assert found[place, column] == np.float32(expected)


@pytest.mark.parametrize("m", [1, 3, 40, 200])
def test_short_and_long_rows_are_gathered_alike(m: int) -> None:
    rng = np.random.default_rng(m)
    rows: Ratings = [
        dict.fromkeys(rng.choice(300, size, replace=False).tolist(), float(size))
        for size in (1, 2, 10, 150, 300)
    ]
    items = rng.choice(300, m, replace=False).astype(np.int32)
    found = pool_of(rows).gather(items, np.arange(5, dtype=np.int32))
    by_hand = [[rows[r].get(i, r / 2) for r in range(5)] for i in items.tolist()]
    assert_array_equal(found, by_hand)


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 2**62), st.text(max_size=5))
@settings(max_examples=60)
def test_the_smallest_draws_are_chosen_and_never_the_user(
    n: int, size: int, seed: int, user_id: str
) -> None:
    ids = [f"ü{r}" for r in range(n)]
    pool = pool_of([{0: 1.0}] * n, ids=ids, size=size, seed=seed)
    draws = [draw_by_hand(user_id, reviewer, seed) for reviewer in ids]
    outside = pool.chosen_for(7, user_id).tolist()
    assert outside == sorted(sorted(range(n), key=lambda r: (draws[r], r))[:size])
    for own in range(n):
        others = [r for r in range(n) if r != own]
        inside = pool.chosen_for(100 + own, user_id).tolist()
        assert inside == sorted(sorted(others, key=lambda r: (draws[r], r))[:size])


def test_equal_draws_go_by_number() -> None:
    pool = pool_of([{0: 1.0}] * 6, ids=["same"] * 6, size=3)
    assert pool.chosen_for(7, "u").tolist() == [0, 1, 2]
    assert pool.chosen_for(101, "u").tolist() == [0, 2, 3]


def test_the_choice_is_by_ids_however_users_are_numbered() -> None:
    rng = np.random.default_rng(0)
    ids = [f"user {r}" for r in range(500)]
    order = rng.permutation(500).tolist()
    rows: Ratings = [{0: 1.0}] * 500
    one, other = (
        pool_of(rows, ids=ids, size=50),
        pool_of(rows, ids=[ids[r] for r in order], size=50),
    )
    for user in range(20):
        chosen = {ids[r] for r in one.chosen_for(-1, f"t{user}")}
        assert chosen == {ids[order[r]] for r in other.chosen_for(-1, f"t{user}")}
        # without one reviewer, one other takes the place
        fewer = pool_of(rows[1:], ids=ids[1:], size=50)
        left = {ids[1 + r] for r in fewer.chosen_for(-1, f"t{user}")}
        assert chosen - left <= {ids[0]}


def test_users_and_seeds_draw_apart_and_evenly() -> None:
    pool = pool_of([{0: 1.0}] * 200, size=20)
    chosen = [pool.chosen_for(-1, f"t{user}") for user in range(2000)]
    times = np.bincount(np.concatenate(chosen), minlength=200)
    # 2000 draws with probability 1/10: standard deviation 13.4
    assert 130 < times.min() < times.max() < 270
    overlap = [len(set(a) & set(b)) for a, b in pairwise(chosen)]
    assert 1.7 < np.mean(overlap) < 2.3
    again = pool_of([{0: 1.0}] * 200, size=20, seed=6)
    assert not np.array_equal(again.chosen_for(-1, "t0"), chosen[0])
