"""Parts of ensembles as rows, there and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from spark_rank.engine.batches import build_batch
from spark_rank.engine.member_parts import (
    PART_SCHEMA,
    MemberPart,
    add_parts,
    as_row,
    consecutive,
    from_row,
    part_of,
)
from spark_rank.learners import OAP

RNG = np.random.default_rng(8)
X, RANKS = RNG.normal(size=(60, 3)), RNG.integers(1, 5, 60)
ENSEMBLE = OAP(4, n_members=9, tau=0.7)


def part(first: int, last: int, combine: str = "voted") -> MemberPart:
    group = ENSEMBLE.train_members(X, RANKS, first=first, last=last)
    return part_of(group, combine, X[:5], keep_rules=True)


def same(left: MemberPart, right: MemberPart) -> None:
    for name in ("presented", "correct", "updates", "directions", "test_counts", "rules"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
    for name in ("coef", "coef_steps", "final_thresholds", "scores", "steps", "thresholds",
                 "ranks", "votes", "voted_ranks"):  # fmt: skip
        np.testing.assert_array_equal(
            getattr(left.sums, name), getattr(right.sums, name), err_msg=name
        )
    assert (left.first_member, left.n_rounds) == (right.first_member, right.n_rounds)


@pytest.mark.parametrize("combine", ["bpm", "bagging", "voted"])
@pytest.mark.parametrize("far", [1, 2**33], ids=["narrow", "wide"])
def test_a_row_is_the_part_that_it_was(combine: str, far: int) -> None:
    whole = part(2, 6, combine)
    sums = replace(whole.sums, thresholds=whole.sums.thresholds * far)
    whole = replace(whole, sums=sums)
    (row,) = build_batch([as_row("p", "it", whole)], PART_SCHEMA).to_pylist()
    assert (row["problem"], row["learner"]) == ("p", "it")
    same(from_row(row, 4), whole)


@pytest.mark.parametrize("combine", ["bpm", "bagging", "voted"])
@pytest.mark.parametrize("far", [1, 2**9, 2**20, 2**40])
def test_a_part_of_many_rounds_is_a_short_row(combine: str, far: int) -> None:
    n = 1500
    X, ranks = RNG.normal(size=(n, 3)), RNG.integers(1, 5, n)
    group = ENSEMBLE.train_members(X, ranks, first=2, last=7)
    whole = part_of(group, combine, X[:5], keep_rules=True)
    turning = np.where(np.arange(n) % 3 == 0, far, -far)[:, None] * np.array([[1, -1, 0]])
    if combine == "bpm":
        whole = replace(whole, sums=replace(whole.sums, thresholds=whole.sums.thresholds + turning))
    row = as_row("p", "it", whole)
    same(from_row(row, 4), whole)
    if far == 1:
        travels = sum(len(value) for value in row.values() if isinstance(value, bytes))
        of_members = 1500  # bytes, however many rounds
        assert travels < {"bpm": 12, "bagging": 2, "voted": 5}[combine] * n + of_members


def test_parts_in_any_order_are_the_whole() -> None:
    parts = [part(6, 9), part(0, 1), part(1, 6)]
    same(add_parts(parts), part(0, 9))


def test_runs_of_a_key_cross_the_borders_of_batches() -> None:
    keys = ["a", "a", "b", "b", "b", "c"]
    batches = [pa.record_batch({"key": keys[start : start + 2], "n": [start, start + 1]})
               for start in range(0, 6, 2)]  # fmt: skip
    found = {
        key: [row["n"] for row in rows] for (key,), rows in consecutive(iter(batches), ["key"])
    }
    assert found == {"a": [0, 1], "b": [2, 3, 4], "c": [5]}
