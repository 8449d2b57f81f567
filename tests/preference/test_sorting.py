"""QuickSort and sort-by-degree beside exact expectations, closed forms and `sorted`."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from twins import tournaments

from spark_rank.preference import (
    Counted,
    InvalidPreferenceError,
    InvalidSettingError,
    degree_rank,
    from_matrix,
    from_scores,
    preference_loss,
    quicksort_rank,
    ranking_loss,
)
from spark_rank.preference.theorems import expected_calls
from spark_rank.preference.tournaments import THREE_CYCLE

seeds = st.integers(0, 2**32 - 1)


class EveryPivot:
    """Stands in for a generator: hands out a given list of pivots; draws decide nothing here."""

    def __init__(self, pivots: tuple[int, ...]) -> None:
        self.pivots = list(pivots)
        self.chance = Fraction(1)

    def integers(self, n: int) -> int:
        self.chance /= n
        return self.pivots.pop(0) if self.pivots else self._stop(n)

    def _stop(self, n: int) -> int:
        raise NeedsPivot(n)

    def random(self, n: int) -> np.ndarray:
        return np.full(n, 0.5)


class NeedsPivot(Exception):  # noqa: N818 — a signal, not an error
    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.n = n


def all_outcomes(h: np.ndarray) -> dict[tuple[int, ...], Fraction]:
    """Return the exact distribution of QuickSort's order, by running it with all pivots."""
    outcomes: dict[tuple[int, ...], Fraction] = {}
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        pivots = waiting.pop()
        rng = EveryPivot(pivots)
        try:
            order = tuple(quicksort_rank(range(len(h)), from_matrix(h), rng))  # type: ignore[arg-type]
        except NeedsPivot as more:
            waiting += [(*pivots, pivot) for pivot in range(more.n)]
            continue
        outcomes[order] = outcomes.get(order, Fraction(0)) + rng.chance
    return outcomes


@given(tournaments(at_least=2, at_most=5), st.integers(0, 2**5 - 1))
def test_bipartite_expected_loss_is_exactly_that_of_the_preference(
    h: np.ndarray, split: int
) -> None:
    groups = [{u for u in range(len(h)) if (split >> u & 1) == side} for side in (0, 1)]
    truth = [group for group in groups if group]
    expected = sum(
        float(chance) * ranking_loss(order, truth) for order, chance in all_outcomes(h).items()
    )
    assert_allclose(expected, preference_loss(from_matrix(h), truth), atol=1e-12)


@given(tournaments(at_least=2, at_most=5))
def test_general_bounds_hold_exactly_for_every_tournament(h: np.ndarray) -> None:
    n, prefer, outcomes = len(h), from_matrix(h), all_outcomes(h)
    assert sum(outcomes.values()) == 1
    losses = {o: preference_loss(prefer, o) for o in itertools.permutations(range(n))}
    for truth, loss in losses.items():
        mean = sum(float(c) * ranking_loss(order, truth) for order, c in outcomes.items())
        assert mean <= 2.0 * loss + 1e-12
    mean = sum(float(chance) * losses[order] for order, chance in outcomes.items())
    assert mean <= 3.0 * min(losses.values()) + 1e-12


@pytest.mark.parametrize("n", [2, 3, 5])
def test_closed_form_of_calls_is_the_mean_over_all_pivots(n: int) -> None:
    @cache
    def twin(size: int, k: int) -> Fraction:
        """Hold a pivot against all others; sort on the left; on the right if places are left."""
        if size <= 1 or k <= 0:
            return Fraction(0)
        parts = [
            twin(left, min(k, left)) + twin(size - 1 - left, k - left - 1) for left in range(size)
        ]
        return size - 1 + sum(parts, Fraction(0)) / size

    for k in range(1, n + 1):
        assert_allclose(expected_calls(n, k), float(twin(n, k)), rtol=1e-12)


def test_calls_of_a_transitive_preference_have_the_known_mean() -> None:
    n, runs, rng = 40, 400, np.random.default_rng(5)
    for k in (3, n):
        calls = []
        for _ in range(runs):
            prefer = Counted(from_scores(rng.permutation(n)))
            quicksort_rank(range(n), prefer, rng, top=k)
            calls.append(prefer.calls)
        error = 5.0 * np.std(calls) / np.sqrt(runs)
        assert abs(np.mean(calls) - expected_calls(n, k)) < error


@given(st.lists(st.integers(-50, 50), max_size=60, unique=True), seeds)
def test_a_transitive_preference_sorts(values: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    best_first = sorted(values, reverse=True)
    assert quicksort_rank(values, lambda u, v: float(u > v), rng) == best_first
    assert degree_rank(values, lambda u, v: float(u > v)) == best_first


@given(tournaments(at_most=12), seeds, st.integers(1, 14))
def test_top_is_the_beginning_of_the_whole_order(h: np.ndarray, seed: int, top: int) -> None:
    whole, part = Counted(from_matrix(h)), Counted(from_matrix(h))
    order = quicksort_rank(range(len(h)), whole, np.random.default_rng(seed))
    assert sorted(order) == list(range(len(h)))
    assert quicksort_rank(range(len(h)), part, np.random.default_rng(seed), top=top) == order[:top]
    assert part.calls <= whole.calls <= len(h) * (len(h) - 1) // 2


@given(tournaments(at_most=12), seeds)
def test_a_function_and_its_vector_form_agree(h: np.ndarray, seed: int) -> None:
    by_pair, at_once = Counted(lambda u, v: float(h[u, v])), Counted(from_matrix(h))
    orders = [
        quicksort_rank(range(len(h)), prefer, np.random.default_rng(seed))
        for prefer in (by_pair, at_once)
    ]
    assert orders[0] == orders[1]
    assert by_pair.calls == at_once.calls
    assert degree_rank(range(len(h)), by_pair) == degree_rank(range(len(h)), at_once)


@given(tournaments(at_most=12))
def test_degree_rank_sorts_by_row_sums_and_ties_keep_their_order(h: np.ndarray) -> None:
    counted = Counted(from_matrix(h))
    n = len(h)
    degrees = h.sum(axis=1)
    assert degree_rank(range(n), counted) == sorted(range(n), key=lambda u: -degrees[u])
    assert counted.calls == n * (n - 1) // 2
    backwards = list(reversed(range(n)))
    assert degree_rank(backwards, counted) == sorted(backwards, key=lambda u: -degrees[u])


def test_degree_may_lose_thrice_the_preference_where_the_truth_is_an_order() -> None:
    cycle = from_matrix(THREE_CYCLE)
    truths = list(itertools.permutations(range(3)))
    order = degree_rank([2, 1, 0], cycle)  # all degrees tie
    assert max(ranking_loss(order, t) / preference_loss(cycle, t) for t in truths) == 3.0


@given(tournaments(at_least=2, at_most=6), st.integers(1, 2**6 - 2))
def test_degree_loses_at_most_twice_the_preference_where_the_truth_is_bipartite(
    h: np.ndarray, split: int
) -> None:
    groups = [{u for u in range(len(h)) if (split >> u & 1) == side} for side in (0, 1)]
    truth = [group for group in groups if group]
    loss = ranking_loss(degree_rank(range(len(h)), from_matrix(h)), truth)
    assert loss <= 2.0 * preference_loss(from_matrix(h), truth) + 1e-12


def test_equal_degrees_of_fractions_tie_whatever_their_sums_round_to() -> None:
    thirds = np.array([[0.5, 0.1, 0.7, 0.4], [0.9, 0.5, 0.2, 0.1], [0.3, 0.8, 0.5, 0.1], [0.6, 0.9, 0.9, 0.5]])  # fmt: skip  # noqa: E501
    assert degree_rank([3, 2, 1, 0], from_matrix(thirds)) == [3, 2, 1, 0]
    assert degree_rank([0, 1, 2, 3], from_matrix(thirds)) == [3, 0, 1, 2]


def test_a_probability_is_the_chance_to_go_first() -> None:
    rng, runs = np.random.default_rng(8), 4000
    first = [quicksort_rank("ab", lambda u, v: 0.8 if u < v else 0.2, rng)[0] for _ in range(runs)]
    assert abs(first.count("a") / runs - 0.8) < 5.0 * np.sqrt(0.16 / runs)


def test_many_items_in_the_worst_order_need_no_recursion() -> None:
    n = 100_000
    order = quicksort_rank(np.arange(n), from_scores(np.arange(n)), np.random.default_rng(1))
    assert order == list(range(n - 1, -1, -1))


def test_a_chain_of_one_sided_parts_is_no_deeper_than_memory() -> None:
    class FirstPivot(EveryPivot):
        def integers(self, n: int) -> int:
            return 0

    n = 3_000  # far beyond the recursion limit; the pivot is always the best item left
    order = quicksort_rank(range(n), from_scores(-np.arange(n)), FirstPivot(()))  # type: ignore[arg-type]
    assert order == list(range(n))


def test_items_may_be_anything_and_none_give_nothing() -> None:
    rng = np.random.default_rng(0)
    pairs = [("b", 2), ("a", 1), ("c", 3)]
    assert quicksort_rank(pairs, lambda u, v: float(u[1] < v[1]), rng) == sorted(pairs)
    assert quicksort_rank([], lambda u, v: 1.0, rng) == []
    assert degree_rank([], lambda u, v: 1.0) == []
    assert degree_rank(["x"], lambda u, v: 1.0) == ["x"]


@pytest.mark.parametrize("value", [float("nan"), 1.5, -0.1])
def test_a_preference_outside_0_to_1_is_refused(value: float) -> None:
    with pytest.raises(InvalidPreferenceError, match=r"not in \[0, 1\]"):
        quicksort_rank([1, 2], lambda u, v: value, np.random.default_rng(0))
    with pytest.raises(InvalidPreferenceError, match=r"not in \[0, 1\]"):
        degree_rank([1, 2], lambda u, v: value)


@pytest.mark.parametrize("top", [0, -1, 1.5, True])
def test_a_senseless_top_is_refused(top: int) -> None:
    with pytest.raises(InvalidSettingError, match="top="):
        quicksort_rank([1, 2], lambda u, v: 1.0, np.random.default_rng(0), top=top)
