"""Parts of ensembles become rows and back."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from spark_rank.learners import OAP
from spark_rank.learners.perceptrons import blocks
from spark_rank.users.batches import build_batch
from spark_rank.users.member_sums import (
    PART_SCHEMA,
    MemberPart,
    as_row,
    consecutive,
    from_row,
    part_of,
    sum_of_rows,
)

RNG = np.random.default_rng(8)
X, RANKS = RNG.normal(size=(60, 3)), RNG.integers(1, 5, 60)
ENSEMBLE = OAP(4, n_members=9, tau=0.7)


def part(first: int, last: int, combine: str = "voted") -> MemberPart:
    group = ENSEMBLE.train_members(X, RANKS, first=first, last=last)
    return part_of(group, combine, X[:5], keep_rules=True)


def same(left: MemberPart, right: MemberPart) -> None:
    for name in ("presented", "correct", "updates", "directions", "test_counts", "rules"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
    for name in ("n_members", "first_round", "n_rounds", "coef", "coef_steps", "thresholds",
                 "moves", "ranks", "votes", "voted_ranks"):  # fmt: skip
        np.testing.assert_array_equal(
            getattr(left.sums, name), getattr(right.sums, name), err_msg=name
        )
    assert left.first_member == right.first_member


@pytest.mark.parametrize("block", [2**16, 7, 60, 1])
@pytest.mark.parametrize("combine", ["bpm", "bagging", "voted"])
@pytest.mark.parametrize("far", [1, 2**33], ids=["narrow", "wide"])
def test_a_row_is_the_part_that_it_was(
    combine: str, far: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROUNDS", block)
    whole = part(2, 6, combine)
    whole = replace(whole, sums=replace(whole.sums, thresholds=whole.sums.thresholds * far))
    (row,) = build_batch([as_row("p", "it", whole)], PART_SCHEMA).to_pylist()
    assert (row["problem"], row["learner"], row["block"]) == ("p", "it", 0)
    same(from_row(row, 4), whole)


def test_a_row_is_of_the_block_of_its_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROUNDS", 20)
    group, rows = None, []
    for start, stop in ((0, 20), (20, 35), (35, 60)):
        group = ENSEMBLE.train_members(X[start:stop], RANKS[start:stop], resume=group)
        here = part_of(group, "bpm", X[:5], keep_rules=False)
        row = as_row("p", "it", here)
        same(from_row(row, 4), here)
        rows.append((row["block"], len(here.sums.coef)))
    assert rows == [(0, 1), (1, 2), (1, 2)]


@pytest.mark.parametrize("combine", ["bpm", "bagging", "voted"])
@pytest.mark.parametrize("far", [1, 2**9, 2**20, 2**30])
def test_a_part_of_many_rounds_is_a_short_row(combine: str, far: int) -> None:
    n = 1500
    X, ranks = RNG.normal(size=(n, 3)), RNG.integers(1, 5, n)
    group = ENSEMBLE.train_members(X, ranks, first=2, last=7)
    whole = part_of(group, combine, X[:5], keep_rules=True)
    turning = np.where(np.arange(n) % 3 == 0, far, -far)[:, None] * np.array([[1, -1, 0]])
    if combine == "bpm":
        moves = whole.sums.moves + turning.astype(np.int32)
        whole = replace(whole, sums=replace(whole.sums, moves=moves))
    if combine == "voted":
        votes = whole.sums.votes + np.cumsum(turning[:, 0])
        whole = replace(whole, sums=replace(whole.sums, votes=votes))
    row = as_row("p", "it", whole)
    same(from_row(row, 4), whole)
    if far == 1:
        travels = sum(len(value) for value in row.values() if isinstance(value, bytes))
        of_members = 1500  # bytes, however many rounds
        assert travels < {"bpm": 4, "bagging": 2, "voted": 5}[combine] * n + of_members


def test_parts_in_any_order_are_the_whole() -> None:
    parts = [part(6, 9), part(0, 1), part(1, 6)]
    same(sum_of_rows([as_row("p", "it", one) for one in parts], 4), part(0, 9))


def test_many_parts_are_read_one_at_a_time() -> None:
    n = 50_000
    X, ranks = RNG.normal(size=(n, 1)), RNG.integers(1, 5, n)
    ensemble = OAP(4, n_members=40, tau=0.1)
    rows = []
    for j in range(40):
        group = ensemble.train_members(X, ranks, first=j, last=j + 1)
        rows.append(as_row("p", "it", part_of(group, "bpm", None, keep_rules=False)))
    sum_of_rows(rows[:2], 4)
    tracemalloc.start()
    sum_of_rows(rows, 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # moves of k−1 = 3 thresholds in int32: of the sum so far, of the next, of both
    assert peak < 5 * 12 * n


def test_runs_of_a_key_cross_the_borders_of_batches() -> None:
    keys = ["a", "a", "b", "b", "b", "c"]
    batches = [pa.record_batch({"key": keys[start : start + 2], "n": [start, start + 1]})
               for start in range(0, 6, 2)]  # fmt: skip
    found = {
        key: [row["n"] for row in rows] for (key,), rows in consecutive(iter(batches), ["key"])
    }
    assert found == {"a": [0, 1], "b": [2, 3, 4], "c": [5]}
