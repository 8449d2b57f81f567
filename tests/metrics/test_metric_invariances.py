"""What no metric may notice: where scores begin, the unit of ratings, the order of the items.

Exact arithmetic of all pairs is the judge at any scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spark_rank.metrics import (
    BATCH_METRICS,
    auc,
    auc_interval,
    average_precision,
    batch_metrics,
    batch_training_metrics,
    bootstrap_interval,
    compare_paired,
    describe,
    exact_rank_rate,
    holm,
    margin_loss,
    mean_1norm_difference,
    mean_squared_difference,
    ndcg,
    nearest_ranks,
    pair_cost,
    pairwise_misranking,
    precision,
    rank_loss,
    recall,
    roc_curve,
    t_interval,
)

LEVELS = np.arange(0.0, 5.5, 0.5)
# with the power of the unit that a metric has
IN_UNITS: dict[str, tuple[Callable[[np.ndarray, np.ndarray, float], Any], int]] = {
    "msd": (lambda h, y, u: mean_squared_difference(h, y), 2),
    "m1d": (lambda h, y, u: mean_1norm_difference(h, y), 1),
    "misranking": (lambda h, y, u: pairwise_misranking(h, y), 0),
    "hr1": (lambda h, y, u: pair_cost(h, y, "hr", 1), 1),
    "hr2": (lambda h, y, u: pair_cost(h, y, "hr", 2), 2),
    "hmp1": (lambda h, y, u: pair_cost(h, y, "hmp", 1), 1),
    "hmp2": (lambda h, y, u: pair_cost(h, y, "hmp", 2), 2),
    "svr1": (lambda h, y, u: pair_cost(h, y, "svr", 1, 0.25 * u), 1),
    "svr2": (lambda h, y, u: pair_cost(h, y, "svr", 2, 0.25 * u), 2),
    "margin": (lambda h, y, u: margin_loss(h, y, 0.5 * u), 0),
    "auc": (lambda h, y, u: auc(h, y >= 3.0 * u), 0),
    "strict auc": (lambda h, y, u: auc(h, y >= 3.0 * u, ties="strict"), 0),
    "auc interval": (lambda h, y, u: auc_interval(h, y >= 3.0 * u), 0),
    "precision": (lambda h, y, u: precision(h, y, 3, 3.0 * u), 0),
    "recall": (lambda h, y, u: recall(h, y, 3, 3.0 * u), 0),
    "average precision": (lambda h, y, u: average_precision(h, y, 3, 3.0 * u), 0),
    "rank loss": (
        lambda h, y, u: rank_loss(nearest_ranks(h, LEVELS * u), nearest_ranks(y, LEVELS * u)), 0
    ),
    "exact ranks": (
        lambda h, y, u: exact_rank_rate(nearest_ranks(h, LEVELS * u), nearest_ranks(y, LEVELS * u)),
        0,
    ),
}  # fmt: skip
OF_RANKS = ("rank loss", "exact ranks")
# eighths and halves: shifts and products by powers of two are exact, ties stay ties
lists = st.lists(st.tuples(st.integers(-40, 80), st.integers(0, 10)), min_size=0, max_size=24).map(
    lambda rows: (np.array([r[0] / 8.0 for r in rows]), np.array([r[1] / 2.0 for r in rows]))
)
many_levels = st.lists(
    st.tuples(st.integers(-40, 80), st.integers(-400, 400)), min_size=18, max_size=60
).map(lambda rows: (np.array([r[0] / 8.0 for r in rows]), np.array([r[1] / 8.0 for r in rows])))
each_metric = pytest.mark.parametrize("name", IN_UNITS)


@each_metric
@given(problem=st.one_of(lists, many_levels), exponent=st.integers(-400, 400))
@settings(max_examples=40)
def test_a_metric_has_its_unit(name: str, problem: Any, exponent: int) -> None:
    (h, y), unit = problem, 2.0**exponent
    metric, power = IN_UNITS[name]
    plain, scaled = metric(h, y, 1.0), metric(h * unit, y * unit, unit)
    assert scaled == (None if plain is None else plain if power == 0 else plain * unit**power)


@pytest.mark.parametrize("name", [name for name in IN_UNITS if name not in OF_RANKS])
@given(problem=st.one_of(lists, many_levels), shift=st.integers(-(2**30), 2**30))
@settings(max_examples=40)
def test_scores_have_no_origin(name: str, problem: Any, shift: int) -> None:
    h, y = problem
    metric, _ = IN_UNITS[name]
    plain, moved = metric(h, y, 1.0), metric(h + shift / 8.0, y, 1.0)
    if plain is None or isinstance(plain, tuple):
        assert moved == plain
    else:
        assert_allclose(moved, plain, rtol=1e-12, atol=1e-14)


@each_metric
@given(problem=st.one_of(lists, many_levels), random=st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_items_have_no_order(name: str, problem: Any, random: Random) -> None:
    h, y = problem
    if name in ("precision", "recall", "average precision"):
        h = h + np.arange(len(h)) / 1024.0  # of equal scores the first comes first: none here
    order = list(range(len(h)))
    random.shuffle(order)
    metric, _ = IN_UNITS[name]
    plain, shuffled = metric(h, y, 1.0), metric(h[order], y[order], 1.0)
    if plain is None or isinstance(plain, tuple):
        assert shuffled == plain
    else:
        assert_allclose(shuffled, plain, rtol=1e-12, atol=1e-14)


@given(problem=lists, exponent=st.integers(-300, 300), shift=st.integers(-(2**20), 2**20))
def test_ndcg_and_the_roc_curve_know_the_order_of_scores_alone(
    problem: Any, exponent: int, shift: int
) -> None:
    h, y = problem
    for moved in (h * 2.0**exponent, h + shift, np.exp(h / 4.0)):
        assert ndcg(moved, y, 5) == ndcg(h, y, 5)
        one, other = roc_curve(h, y >= 3.0), roc_curve(moved, y >= 3.0)
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert [part.tolist() for part in one[:2]] == [part.tolist() for part in other[:2]]


@given(problem=lists, exponent=st.integers(-300, 300))
def test_batches_have_the_units_of_their_metrics(problem: Any, exponent: int) -> None:
    (h, y), unit = problem, 2.0**exponent
    powers = {
        "msd": 2,
        "m1d": 1,
        "rmse": 1,
        "mae": 1,
        "hr1": 1,
        "hmp1": 1,
        "hmp2": 2,
        "svr1": 1,
        "svr2": 2,
    }

    def measured(u: float) -> dict[str, float]:
        one = h * u, y * u, [0, len(h)]
        found = batch_metrics(
            *one, on_rating_scale=[True], top=3, relevant_from=3.0 * u, epsilon=0.25 * u,
            levels=LEVELS * u,
        )  # fmt: skip
        found |= batch_training_metrics(
            *one, on_rating_scale=[True], with_margin=[True], rho=0.5 * u
        )
        return {name: float(value[0]) for name, value in found.items() if name != "ndcg"}

    plain, scaled = measured(1.0), measured(unit)
    assert plain.keys() == {*BATCH_METRICS, "margin_loss"} - {"ndcg"}
    for name, value in plain.items():
        expected = value * unit ** powers.get(name, 0)
        assert scaled[name] == expected or (math.isnan(value) and math.isnan(scaled[name])), name


def exact(h: np.ndarray, y: np.ndarray, epsilon: float) -> dict[str, Fraction]:
    """Add all m² pairs up in exact arithmetic."""
    found = dict.fromkeys(("msd", "m1d", "svr1", "svr2", "hr1", "hr2", "hmp1", "hmp2"), Fraction(0))
    scores, ratings = [Fraction(v) for v in h], [Fraction(v) for v in y]
    m, reach = len(h), Fraction(epsilon)
    for i in range(m):
        for j in range(m):
            of_h, of_y = scores[j] - scores[i], ratings[j] - ratings[i]
            apart = abs(of_h - of_y)
            excess = max(Fraction(0), apart - reach)
            wrong = of_h * of_y < 0
            for name, value in (("msd", apart**2), ("m1d", apart), ("svr1", excess),
                                ("svr2", excess**2), ("hr1", wrong * abs(of_h)),
                                ("hr2", wrong * of_h**2), ("hmp1", wrong * apart),
                                ("hmp2", wrong * apart**2)):  # fmt: skip
                found[name] += value / m**2
    return found


def as_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


@pytest.mark.parametrize("n_levels", [5, 40])
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-160, 1e-12, 1.0, 1e12, 1e150, 1e200, 1e306])
@given(seed=st.integers(0, 10**6), m=st.integers(2, 20))
@settings(max_examples=10)
def test_costs_are_the_double_sums_at_any_scale(
    scale: float, n_levels: int, seed: int, m: int
) -> None:
    rng = np.random.default_rng(seed)
    h = rng.integers(-80, 81, m) * scale
    y = rng.integers(-n_levels // 2, n_levels // 2, m) * scale
    truth = exact(h, y, 2.0 * scale)
    found = {
        "msd": mean_squared_difference(h, y), "m1d": mean_1norm_difference(h, y),
        **{f"{cost}{n}": pair_cost(h, y, cost, n)  # type: ignore[arg-type]
           for cost in ("hr", "hmp") for n in (1, 2)},
        **{f"svr{n}": pair_cost(h, y, "svr", n, 2.0 * scale)  # type: ignore[arg-type]
           for n in (1, 2)},
    }  # fmt: skip
    if len(set(y)) == 1:
        assert {found.pop(name) for name in ("hr1", "hr2", "hmp1", "hmp2")} == {None}
    # a residual is rounded once, and where a difference is as large as epsilon nothing else is left
    rounding = 4.0 * float(np.spacing(np.abs([h, y]).max()))
    with np.errstate(over="ignore"):
        lost = {"svr1": rounding, "svr2": rounding * (2.0 * as_float(truth["svr1"]) + rounding)}
    for name, value in found.items():
        # denormal numbers have fewer digits
        allowed = max(1e-321, lost.get(name, 0.0))
        assert_allclose(value, as_float(truth[name]), rtol=1e-12, atol=allowed, err_msg=name)


def test_costs_that_overflow_are_infinite_whatever_the_input() -> None:
    for h, y in (
        ([1e200, -1e200, 0.0], [1.0, 2.0, 3.0]),
        ([1.7e308, -1.7e308], [-1.7e308, 1.7e308]),
        ([1.7e308, -1.7e308, 0.0], [1.0, 2.0, 3.0]),
        ([1e160] * 3 + [-1e160], [1.0, 2.0, 3.0, 4.0]),
    ):
        assert mean_squared_difference(h, y) == math.inf
        assert pair_cost(h, y, "svr", 2, 1.0) == math.inf
        assert pair_cost(h, y, "hmp", 2) == math.inf
        batch = batch_metrics(h, y, [0, len(h)], on_rating_scale=[True], top=1, relevant_from=1.0,
                              epsilon=1.0, levels=None)  # fmt: skip
        assert [batch[name][0] for name in ("msd", "hmp2", "svr2")] == [math.inf] * 3


def test_what_is_finite_stays_so_near_the_largest_float() -> None:
    """Residuals overflow, and are equal; sums overflow, and means do not."""
    assert mean_squared_difference([1.7e308] * 3, [-1.7e308] * 3) == 0.0
    assert mean_1norm_difference([1.7e308] * 3, [-1.7e308] * 3) == 0.0
    assert mean_1norm_difference([1e308, -5e307] * 9, [0.0] * 18) == pytest.approx(7.5e307)
    assert pair_cost([1e308, 0.0] * 9, [0.0, 1.0] * 9, "hr", 1) == pytest.approx(5e307)


# statistics over users

samples = st.lists(st.integers(-1000, 1000), min_size=2, max_size=30).map(
    lambda values: np.array(values) / 8.0
)


@given(sample=samples, exponent=st.integers(-200, 200), shift=st.integers(-(2**20), 2**20))
@settings(max_examples=60)
def test_statistics_move_with_their_sample(sample: np.ndarray, exponent: int, shift: int) -> None:
    unit = 2.0**exponent
    for interval in (t_interval, bootstrap_interval):
        plain, scaled, moved = (interval(s) for s in (sample, sample * unit, sample + shift))
        if plain is None or scaled is None or moved is None:
            assert plain is scaled is moved is None
        else:
            assert_allclose(scaled, np.array(plain) * unit, rtol=1e-9, atol=1e-9 * unit)
            assert_allclose(moved, np.array(plain) + shift, rtol=1e-9, atol=1e-6)
    one, scaled_one = describe(sample), describe(sample * unit)
    assert one.mean is not None
    assert one.sd is not None
    assert_allclose([scaled_one.mean, scaled_one.sd], [one.mean * unit, one.sd * unit], rtol=1e-12)
    reversed_one = describe(sample[::-1])
    assert_allclose([reversed_one.mean, reversed_one.sd], [one.mean, one.sd], atol=1e-9)
    assert reversed_one.quantiles == one.quantiles


@given(sample=samples, exponent=st.integers(-200, 200), random=st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_a_comparison_knows_neither_unit_nor_order(
    sample: np.ndarray, exponent: int, random: Random
) -> None:
    unit, other = 2.0**exponent, sample[::-1] + 0.5
    order = list(range(len(sample)))
    random.shuffle(order)
    plain = compare_paired(sample, other)
    for changed in (compare_paired(sample * unit, other * unit),
                    compare_paired(sample[order], other[order])):  # fmt: skip
        assert (changed.wins, changed.ties, changed.losses) == (
            plain.wins, plain.ties, plain.losses
        )  # fmt: skip
        assert changed.sign_p == plain.sign_p
        assert changed.wilcoxon_p == pytest.approx(plain.wilcoxon_p)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_corrected_p_values_follow_their_tests(p_values: list[float], random: Random) -> None:
    order = list(range(len(p_values)))
    random.shuffle(order)
    assert holm(np.array(p_values)[order]).tolist() == holm(p_values)[order].tolist()
