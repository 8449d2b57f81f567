"""What aggregation says of weights holds in any unit: brute force over all orders as the judge."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import best_score

from spark_rank.preference import (
    METHODS,
    InvalidMajoritiesError,
    aggregate_majorities,
    kemeny_lower_bound,
    kemeny_score,
)

UNITS = [1e-300, 1e-12, 1e-10, 1e-7, 1e-3, 1.0, 1e3, 1e7, 1e12, 1e300]
each_method = pytest.mark.parametrize("method", METHODS)


@st.composite
def weights(draw: st.DrawFn) -> np.ndarray:
    """Draw hundredths for up to six items: majorities with cycles, draws and near draws."""
    n = draw(st.integers(2, 6))
    flat = draw(st.lists(st.integers(0, 100), min_size=n * n, max_size=n * n))
    matrix = np.array(flat).reshape(n, n) / 100.0
    np.fill_diagonal(matrix, 0.0)
    return matrix


@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=15)
@given(matrix=weights())
def test_the_certificate_is_true_in_any_unit(matrix: np.ndarray, unit: float) -> None:
    found = aggregate_majorities(matrix * unit, "exact")
    best = best_score(matrix * unit)
    assert found.optimal
    assert found.gap == 0.0
    assert found.score == pytest.approx(best, rel=1e-9, abs=0.0)
    assert found.score == kemeny_score(found.order, matrix * unit)
    assert found.lower_bound == kemeny_lower_bound(matrix * unit)


def test_small_weights_are_solved() -> None:
    matrix = np.round(np.random.default_rng(34).random((5, 5)), 2)
    np.fill_diagonal(matrix, 0.0)
    found = aggregate_majorities(matrix * 1e-7, "exact")
    assert found.score == pytest.approx(best_score(matrix * 1e-7), rel=1e-12, abs=0.0)
    assert found.score == pytest.approx(4.84e-7)


@each_method
@given(matrix=weights(), exponent=st.integers(-900, 900))
@settings(max_examples=25)
def test_the_order_does_not_depend_on_the_unit(
    matrix: np.ndarray, exponent: int, method: str
) -> None:
    unit = 2.0**exponent  # exact, so that draws stay draws
    one, other = (aggregate_majorities(matrix * u, method, seed=3) for u in (1.0, unit))
    assert other.order == one.order
    assert other.score == one.score * unit
    assert other.optimal == one.optimal
    assert other.misranked == one.misranked


@each_method
@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e-10, 1.0, 1e300])
def test_one_opinion_decides_however_light(weight: float, method: str) -> None:
    assert aggregate_majorities([[0, 0], [weight, 0]], method).order == [1, 0]
    assert aggregate_majorities([[0, weight], [0, 0]], method).order == [0, 1]


@each_method
@given(
    values=st.lists(st.integers(-50, 50), min_size=2, max_size=6, unique=True),
    random=st.randoms(use_true_random=False),
)
@settings(max_examples=25)
def test_the_numbering_of_the_items_does_not_matter(
    values: list[int], random: Random, method: str
) -> None:
    """Transitive majorities leave no method a choice."""
    scores = np.array(values, dtype=float)
    matrix = np.maximum(scores[:, None] - scores, 0.0)
    order = list(range(len(values)))
    random.shuffle(order)
    shuffled = aggregate_majorities(matrix[np.ix_(order, order)], method, items=order, seed=1)
    assert shuffled.order == np.argsort(-scores).tolist()
    assert shuffled.score == 0.0


@each_method
def test_whole_counts_of_any_size_are_certified(method: str) -> None:
    rng = np.random.default_rng(5)
    for size in (1, 10**3, 10**9, 10**12):
        matrix = rng.integers(0, 5, (6, 6)).astype(float) * size
        np.fill_diagonal(matrix, 0.0)
        found = aggregate_majorities(matrix, method)
        assert found.score >= best_score(matrix)
        assert found.proven_bound <= best_score(matrix)
        assert found.optimal == (found.score == found.proven_bound)
        if method == "exact":
            assert found.score == best_score(matrix)


def test_counts_that_overflow_are_named() -> None:
    with pytest.raises(InvalidMajoritiesError, match="scale them down"):
        aggregate_majorities(np.full((3, 3), 1e308), "borda")
