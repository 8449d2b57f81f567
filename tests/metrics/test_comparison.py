"""Paired comparisons beside enumeration of all signs and beside SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from spark_rank.metrics import bootstrap_interval, compare_paired, holm, t_interval

halves = st.integers(-4, 4).map(lambda n: n / 2)
small = st.lists(halves | st.floats(-2, 2), min_size=1, max_size=9)


def enumerated_p(differences: list[float]) -> float:
    """Pratt's signed-rank test over every choice of signs of the non-zero differences."""
    ranks = stats.rankdata(np.abs(differences))[np.array(differences) != 0]
    signs = np.sign([d for d in differences if d != 0])
    observed = abs(float(ranks @ signs))
    sums = [
        abs(float(ranks @ np.array(choice)))
        for choice in itertools.product((-1.0, 1.0), repeat=len(ranks))
    ]
    return float(np.mean([total >= observed for total in sums]))


@settings(max_examples=60)
@given(small)
def test_small_samples_are_exact(differences: list[float]) -> None:
    compared = compare_paired(differences, np.zeros(len(differences)))
    assert_allclose(compared.wilcoxon_p, enumerated_p(differences), atol=1e-12)


@pytest.mark.parametrize("n", [5, 20, 50])
def test_without_ties_it_is_scipys_exact_test(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=n), rng.normal(0.3, size=n)
    compared = compare_paired(a, b)
    assert_allclose(compared.wilcoxon_p, stats.wilcoxon(a, b, method="exact").pvalue, rtol=1e-9)


@pytest.mark.parametrize("n", [51, 400, 20_000])
def test_large_samples_are_scipys_approximation(n: int) -> None:
    rng = np.random.default_rng(n)
    # many ties and zeros
    a, b = rng.integers(0, 8, n) / 4, rng.integers(0, 8, n) / 4 + (rng.random(n) < 0.05) * 0.25
    expected = stats.wilcoxon(
        a, b, zero_method="pratt", correction=False, method="asymptotic"
    ).pvalue
    assert_allclose(compare_paired(a, b).wilcoxon_p, expected, rtol=1e-9)


@given(small, small)
def test_counts_signs_and_intervals(first: list[float], second: list[float]) -> None:
    n = min(len(first), len(second))
    a, b = np.array(first[:n]), np.array(second[:n])
    compared = compare_paired(a, b, level=0.8, seed=3, resamples=50)
    assert (compared.wins, compared.ties, compared.losses) == (
        (a < b).sum(),
        (a == b).sum(),
        (a > b).sum(),
    )
    assert_allclose(compared.mean_difference, (a - b).mean(), atol=1e-12)
    assert compared.t_interval == t_interval(a - b, 0.8)
    assert compared.bootstrap_interval == bootstrap_interval(a - b, 0.8, 50, 3)
    unequal = compared.wins + compared.losses
    expected = stats.binomtest(compared.wins, unequal).pvalue if unequal else 1.0
    assert_allclose(compared.sign_p, expected)


@given(small)
def test_the_other_way_round(differences: list[float]) -> None:
    a, b = np.array(differences), np.zeros(len(differences))
    one, other = compare_paired(a, b), compare_paired(b, a)
    upside_down = compare_paired(a, b, lower_is_better=False)
    assert (one.wins, one.losses) == (other.losses, other.wins)
    assert (one.wins, one.losses) == (upside_down.losses, upside_down.wins)
    assert one.wilcoxon_p == other.wilcoxon_p == upside_down.wilcoxon_p
    assert one.sign_p == other.sign_p
    assert one.mean_difference == upside_down.mean_difference


def test_users_without_a_value_are_left_out() -> None:
    a, b = [1.0, np.nan, 3.0, 5.0], [2.0, 1.0, np.nan, 4.0]
    assert compare_paired(a, b) == compare_paired([1.0, 5.0], [2.0, 4.0])


@pytest.mark.parametrize("n", [2, 50, 60, 7_000])
def test_identical_learners(n: int) -> None:
    values = np.random.default_rng(0).normal(size=n)
    compared = compare_paired(values, values)
    assert (compared.wilcoxon_p, compared.sign_p) == (1.0, 1.0)
    assert (compared.mean_difference, compared.sd) == (0.0, 0.0)
    assert compared.t_interval == compared.bootstrap_interval == (0.0, 0.0)
    assert (compared.wins, compared.ties, compared.losses) == (0, n, 0)


def test_one_user_or_none() -> None:
    one = compare_paired([1.0], [2.0])
    assert (one.users, one.mean_difference, one.wins) == (1, -1.0, 1)
    assert (one.sd, one.t_interval, one.bootstrap_interval) == (None, None, None)
    assert (one.wilcoxon_p, one.sign_p) == (1.0, 1.0)
    none = compare_paired([], [])
    assert (none.users, none.mean_difference, none.wilcoxon_p, none.sign_p) == (0, None, None, None)


def test_the_signed_rank_test_keeps_its_level() -> None:
    rng = np.random.default_rng(4)
    small_p = [
        compare_paired(*rng.normal(size=(2, 80)), resamples=1).wilcoxon_p for _ in range(600)
    ]
    share = np.mean([p is not None and p <= 0.1 for p in small_p])
    assert abs(share - 0.1) <= 4 * np.sqrt(0.09 / 600)


def test_half_a_million_users() -> None:
    rng = np.random.default_rng(6)
    a = rng.normal(size=480_000)
    b = a + rng.normal(0.01, 0.5, size=len(a))
    compared = compare_paired(a, b)
    expected = stats.wilcoxon(a, b, correction=False, method="asymptotic").pvalue
    assert_allclose(compared.wilcoxon_p, expected, rtol=1e-6)
    assert compared.bootstrap_interval is not None
    assert_allclose(compared.bootstrap_interval, compared.t_interval, atol=3e-4)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_steps_down(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    n = len(p_values)
    order = sorted(range(n), key=lambda i: p_values[i])
    running = 0.0
    for step, i in enumerate(order):
        running = max(running, (n - step) * p_values[i])
        assert_allclose(adjusted[i], min(1.0, running))
    assert (adjusted >= p_values).all()
    assert_array_equal(holm(p_values[::-1]), adjusted[::-1])


def test_holm_of_a_known_family() -> None:
    assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert holm([0.2]).tolist() == [0.2]


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        compare_paired([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="one length"):
        compare_paired([[1.0]], [[2.0]])
    with pytest.raises(ValueError, match="must be finite"):
        compare_paired([np.inf, 1.0], [np.inf, 1.0])
    for p_values in ([1.2], [-0.1], [np.nan], [[0.1]]):
        with pytest.raises(ValueError, match="p-values must"):
            holm(p_values)
