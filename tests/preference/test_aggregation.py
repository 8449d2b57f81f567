"""Aggregation beside brute force over all orders and a pair-by-pair count of voters."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from twins import best_score, majority_counts, score_twin

from spark_rank.preference import (
    METHODS,
    InvalidMajoritiesError,
    InvalidRankingError,
    InvalidSettingError,
    aggregate,
    aggregate_majorities,
    count_majorities,
    kemeny_lower_bound,
    kemeny_score,
)
from spark_rank.preference.local_search import insertion_search
from spark_rank.preference.tournaments import random_tournament

each_method = pytest.mark.parametrize("method", METHODS)


@st.composite
def ballots(draw: st.DrawFn) -> list[list[object]]:
    """Draw rankings of a to f: full or partial, with and without ties."""
    voters = []
    for _ in range(draw(st.integers(1, 6))):
        levels = draw(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 4)))
        groups = [{i for i in levels if levels[i] == level} for level in (1, 2, 3, 4)]
        voters.append([g if len(g) > 1 else next(iter(g)) for g in groups if g])
    return voters


@given(ballots())
def test_majorities_are_the_voters_of_each_pair(voters: list[list[object]]) -> None:
    counts, items = count_majorities(voters, "abcdef")
    for (i, u), (j, v) in itertools.product(enumerate(items), repeat=2):
        above = 0
        for voter in voters:
            place = {x: p for p, group in enumerate(voter) for x in group}
            above += u in place and v in place and place[u] < place[v]
        assert counts[i, j] == above


@given(majority_counts(), st.randoms(use_true_random=False))
def test_score_is_the_double_sum_and_never_below_the_bound(counts, random) -> None:
    order = list(range(len(counts)))
    random.shuffle(order)
    assert kemeny_score(order, counts) == score_twin(order, counts)
    assert kemeny_lower_bound(counts) <= best_score(counts)


@settings(max_examples=150)
@given(majority_counts())
def test_exact_is_brute_force(counts: np.ndarray) -> None:
    result = aggregate_majorities(counts, "exact")
    assert result.score == best_score(counts) == score_twin(result.order, counts)
    assert result.optimal
    assert result.gap == 0.0
    assert result.proven_bound == result.score


@pytest.mark.parametrize("seed", range(6))
def test_exact_is_brute_force_on_seven_items_in_one_cycle(seed: int) -> None:
    counts = random_tournament(7, np.random.default_rng(seed))
    counts[np.arange(7), (np.arange(7) + 1) % 7] = 1.0
    counts[(np.arange(7) + 1) % 7, np.arange(7)] = 0.0
    assert aggregate_majorities(counts, "exact").score == best_score(counts)
    weighted = counts * np.random.default_rng(seed).uniform(0.5, 2.0, (7, 7))
    assert_allclose(aggregate_majorities(weighted, "exact").score, best_score(weighted), rtol=1e-9)


def test_exact_needs_the_integers_where_the_relaxation_is_fractional() -> None:
    counts = random_tournament(25, np.random.default_rng(1))
    result = aggregate_majorities(counts, "exact")
    assert result.optimal
    assert result.score <= aggregate_majorities(counts, "local_search").score
    assert result.score == kemeny_score(result.order, counts)


@pytest.mark.parametrize("n_voters", [5, 12])
def test_exact_proves_thirty_items_of_a_few_voters(n_voters: int) -> None:
    rng = np.random.default_rng(n_voters)
    voters = [rng.permutation(30).tolist() for _ in range(n_voters)]
    result = aggregate(voters, "exact")
    assert result.optimal
    assert result.lower_bound < result.score == result.proven_bound


def test_without_time_the_gap_is_honest() -> None:
    counts = random_tournament(40, np.random.default_rng(3))
    result = aggregate_majorities(counts, "exact", time_limit=1e-9)
    start = aggregate_majorities(counts, "local_search")
    assert result.score <= start.score
    assert not result.optimal
    assert_allclose(result.gap, (result.score - result.proven_bound) / result.score)


@settings(max_examples=150)
@given(majority_counts(at_most=9), st.randoms(use_true_random=False))
def test_local_search_ends_no_worse_and_where_no_insertion_helps(counts, random) -> None:
    start = list(range(len(counts)))
    random.shuffle(start)
    order = insertion_search(start, counts)
    score = score_twin(order, counts)
    assert sorted(order) == sorted(start)
    assert score <= score_twin(start, counts)
    for item in order:
        rest = [other for other in order if other != item]
        for place in range(len(order)):
            assert score_twin([*rest[:place], item, *rest[place:]], counts) >= score


@given(majority_counts(at_most=8))
def test_local_search_is_no_worse_than_its_three_starts(counts: np.ndarray) -> None:
    scores = {m: aggregate_majorities(counts, m).score for m in METHODS}
    starts = min(scores["borda"], scores["copeland"], scores["quicksort"])
    assert scores["exact"] <= scores["local_search"] <= starts


@pytest.mark.parametrize("method", ["copeland", "exact", "quicksort"])
@settings(max_examples=60)
@given(counts=majority_counts(), data=st.data())
def test_a_condorcet_winner_comes_first(method: str, counts, data: st.DataObject) -> None:
    winner = data.draw(st.integers(0, len(counts) - 1))
    counts[winner] = counts[:, winner] + 1.0
    assert aggregate_majorities(counts, method).order[0] == winner


@each_method
@given(voters=ballots())
def test_every_result_is_an_order_with_its_own_figures(method: str, voters) -> None:
    counts, items = count_majorities(voters, "fedcba")
    result = aggregate(voters, method, items="fedcba")
    rows = [items.index(item) for item in result.order]
    assert sorted(rows) == list(range(6))
    assert result.score == score_twin(rows, counts)
    assert result.lower_bound == kemeny_lower_bound(counts)
    assert result.lower_bound <= result.proven_bound <= result.score
    assert result.optimal == (result.gap == 0.0)
    assert not result.optimal or result.score == best_score(counts)
    if counts.sum():
        assert_allclose(result.misranked, result.score / counts.sum())
    else:
        assert result.misranked is None
    assert result.order == aggregate_majorities(counts, method, items=items).order


@each_method
def test_a_unanimous_electorate_gets_its_order(method: str) -> None:
    result = aggregate([[3, 1, 2, 0]] * 4, method)
    assert result.order == [3, 1, 2, 0]
    assert (result.score, result.gap, result.misranked, result.optimal) == (0.0, 0.0, 0.0, True)


@pytest.mark.parametrize("method", ["borda", "copeland", "local_search", "exact"])
def test_ties_follow_the_order_of_items(method: str) -> None:
    opposed = [["a", "b", "c"], ["c", "b", "a"]]
    assert aggregate(opposed, method).order == ["a", "b", "c"]
    assert aggregate(opposed, method, items="cab").order == ["c", "a", "b"]


def test_borda_is_the_classic_points_on_full_rankings() -> None:
    rng = np.random.default_rng(4)
    voters = [rng.permutation(8).tolist() for _ in range(7)]
    points = {item: sum(7 - voter.index(item) for voter in voters) for item in range(8)}
    assert aggregate(voters, "borda").order == sorted(range(8), key=lambda item: -points[item])


def test_an_item_left_out_is_in_the_middle_for_borda() -> None:
    assert aggregate([["a", "c"], ["a", "c"]], "borda", items="abc").order == ["a", "b", "c"]


def test_quicksort_depends_on_its_seed_alone() -> None:
    counts = random_tournament(40, np.random.default_rng(0))
    orders = [aggregate_majorities(counts, "quicksort", seed=s).order for s in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


@each_method
def test_few_items(method: str) -> None:
    assert aggregate([], method).order == []
    only = aggregate([["x"]], method)
    assert (only.order, only.score, only.misranked) == (["x"], 0.0, None)


def test_the_diagonal_is_not_read_and_the_input_not_changed() -> None:
    counts = np.array([[np.nan, 3.0], [1.0, np.nan]])
    before = counts.copy()
    assert aggregate_majorities(counts, "exact").score == 1.0
    assert_array_equal(counts, before)


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="is unknown: give one of"):
        aggregate([["a"]], "schulze")
    with pytest.raises(InvalidSettingError, match="time_limit"):
        aggregate([["a"]], "exact", time_limit=0.0)
    with pytest.raises(InvalidRankingError, match="give `items`"):
        aggregate([["a", 1]])
    with pytest.raises(InvalidRankingError, match="not among the items"):
        aggregate([["a", "b"]], items="a")
    with pytest.raises(InvalidRankingError, match="listed twice"):
        aggregate([["a", "b"]], items="aab")
    with pytest.raises(InvalidRankingError, match="name every row"):
        aggregate_majorities(np.zeros((2, 2)), items="a")
    with pytest.raises(InvalidMajoritiesError, match="square"):
        aggregate_majorities(np.zeros((2, 3)))
    with pytest.raises(InvalidMajoritiesError, match="finite"):
        aggregate_majorities([[0, np.inf], [0, 0]])
