"""The pair metrics beside slow twins that follow the paper's double sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spark_rank.metrics import (
    mean_1norm_difference,
    mean_squared_difference,
    pairwise_misranking,
)

# few distinct values make ties, in scores and in ratings
vectors = st.integers(2, 30).flatmap(
    lambda m: st.tuples(
        st.lists(st.sampled_from([-1.5, 0.0, 0.25, 1.0, 3.0]), min_size=m, max_size=m),
        st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.5]), min_size=m, max_size=m),
    )
)


def double_sum(h: list[float], y: list[float], power: int) -> float:
    """Eqs. 67 and 68 as printed."""
    m = len(y)
    total = 0.0
    for i in range(m):
        for j in range(m):
            total += abs((h[j] - h[i]) - (y[j] - y[i])) ** power
    return total / m**2


def misranked_share(h: list[float], y: list[float]) -> float | None:
    """Eq. 69: the share of pairs with y_i > y_j that have h_i <= h_j."""
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    return sum(h[i] <= h[j] for i, j in pairs) / len(pairs) if pairs else None


@given(vectors)
def test_msd_and_m1d_are_the_double_sums(pair: tuple[list[float], list[float]]) -> None:
    h, y = pair
    assert_allclose(mean_squared_difference(h, y), double_sum(h, y, 2), atol=1e-12)
    assert_allclose(mean_1norm_difference(h, y), double_sum(h, y, 1), atol=1e-12)


@given(vectors)
def test_misranking_is_the_share_of_pairs(pair: tuple[list[float], list[float]]) -> None:
    assert pairwise_misranking(*pair) == misranked_share(*pair)


@given(vectors, st.floats(-100, 100))
def test_a_constant_shift_of_scores_changes_nothing(
    pair: tuple[list[float], list[float]], shift: float
) -> None:
    h, y = pair
    moved = [value + shift for value in h]
    assert_allclose(mean_squared_difference(moved, y), mean_squared_difference(h, y), atol=1e-9)
    assert_allclose(mean_1norm_difference(moved, y), mean_1norm_difference(h, y), atol=1e-9)


def test_undefined_is_none_and_never_zero() -> None:
    for metric in (mean_squared_difference, mean_1norm_difference, pairwise_misranking):
        assert metric([], []) is None
        assert metric([1.0], [2.0]) is None
    assert pairwise_misranking([1.0, 2.0], [3.0, 3.0]) is None
    assert mean_squared_difference([1.0, 2.0], [3.0, 3.0]) == 0.5


def test_extremes() -> None:
    y = [1.0, 2.0, 2.0, 5.0]
    assert pairwise_misranking(y, y) == 0.0
    assert pairwise_misranking([-v for v in y], y) == 1.0
    assert pairwise_misranking([7.0] * 4, y) == 1.0, "a tie counts as misranked"
    assert mean_squared_difference(y, y) == 0.0


def test_the_papers_scale_of_a_constant() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(1, 6, 400).astype(float)
    assert_allclose(mean_squared_difference(np.zeros(400), y), 2 * y.var())


@pytest.mark.parametrize("metric", [mean_squared_difference, pairwise_misranking])
def test_bad_vectors_are_refused(metric: object) -> None:
    assert callable(metric)
    with pytest.raises(ValueError, match="one length"):
        metric([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        metric([1.0, np.nan], [1.0, 2.0])


def test_a_long_list_needs_no_square_memory() -> None:
    rng = np.random.default_rng(0)
    h, y = rng.normal(size=200_000), rng.integers(1, 6, 200_000).astype(float)
    assert abs((pairwise_misranking(h, y) or 0.0) - 0.5) < 0.01
