"""The pair metrics beside slow twins that follow the paper's double sums."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spark_rank.metrics import (
    mean_1norm_difference,
    mean_squared_difference,
    pair_cost,
    pairwise_misranking,
)
from spark_rank.metrics.discordance import HMP1, HMP2, HR1, HR2, MISRANKING, discordance
from spark_rank.metrics.order import sort_descending

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


def cost_of_pair(
    h: list[float], y: list[float], i: int, j: int, cost: str, epsilon: float
) -> float:
    """Return eqs. 4 to 7 for n = 1."""
    predicted, true = h[j] - h[i], y[j] - y[i]
    if cost in ("hr", "hmp") and predicted * true >= 0:
        return 0.0
    if cost == "hr":
        return abs(predicted)
    return max(0.0, abs(predicted - true) - (epsilon if cost == "svr" else 0.0))


def mean_cost(h: list[float], y: list[float], cost: str, power: int, epsilon: float) -> float:
    """Eq. 2."""
    places = range(len(y))
    total = sum(cost_of_pair(h, y, i, j, cost, epsilon) ** power for i in places for j in places)
    return total / len(y) ** 2


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


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize(
    ("cost", "epsilon"),
    [("hr", 0.0), ("mp", 0.0), ("hmp", 0.0), ("svr", 0.0), ("svr", 0.5), ("svr", 2.1)],
)
@given(pair=vectors)
def test_pair_costs_are_the_double_sums(
    pair: tuple[list[float], list[float]], cost: str, epsilon: float, power: int
) -> None:
    h, y = pair
    got = pair_cost(h, y, cost, power, epsilon)  # type: ignore[arg-type]
    if cost in ("hr", "hmp") and len(set(y)) == 1:
        assert got is None, "no pair could be misordered"
    else:
        assert_allclose(got, mean_cost(h, y, cost, power, epsilon), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("cost", ["hr", "mp", "hmp", "svr"])
def test_pair_costs_of_many_levels(cost: str) -> None:
    rng = np.random.default_rng(1)
    for m in (2, 15, 16, 17, 33, 100):
        h, y = rng.normal(size=m).tolist(), rng.normal(size=m).tolist()
        epsilon = 0.3 if cost == "svr" else 0.0
        for power in (1, 2):
            got = pair_cost(h, y, cost, power, epsilon)  # type: ignore[arg-type]
            assert_allclose(got, mean_cost(h, y, cost, power, epsilon), rtol=1e-11)


@given(vectors, st.floats(-100, 100), st.sampled_from([0.5, 2.0, 4.0]), st.randoms())
def test_what_changes_a_misordering_cost_and_what_does_not(
    pair: tuple[list[float], list[float]], shift: float, factor: float, random: Random
) -> None:
    h, y = pair
    hinge = pair_cost(h, y, "hr", 1)
    if hinge is None:
        return
    assert_allclose(pair_cost([v + shift for v in h], y, "hr", 1), hinge, atol=1e-10)
    assert pair_cost([v * factor for v in h], y, "hr", 1) == hinge * factor
    assert pair_cost([v * factor for v in h], y, "hr", 2) == pair_cost(h, y, "hr", 2) * factor**2  # type: ignore[operator]
    places = list(range(len(y)))
    random.shuffle(places)
    shuffled = [h[i] for i in places], [y[i] for i in places]
    for cost in ("hr", "mp", "hmp", "svr"):
        for power in (1, 2):
            value = pair_cost(h, y, cost, power)  # type: ignore[arg-type]
            assert_allclose(pair_cost(*shuffled, cost, power), value, rtol=1e-10, atol=1e-12)  # type: ignore[arg-type]
    assert pairwise_misranking(*shuffled) == pairwise_misranking(h, y)
    assert pairwise_misranking([v**3 + v for v in h], y) == pairwise_misranking(h, y)
    one_sided, both = pair_cost(h, y, "hmp", 2), pair_cost(h, y, "mp", 2)
    assert one_sided is not None
    assert both is not None
    assert 0.0 <= one_sided <= both * (1 + 1e-12)
    assert hinge <= (pair_cost(h, y, "hmp", 1) or 0.0) * (1 + 1e-12)


def test_no_digit_is_lost_where_a_tiny_disorder_hides_in_a_wide_list() -> None:
    h = [0.0, 1e6, 1e6 + 2**-20, 2e6]
    y = [1.0, 3.0, 2.0, 4.0]
    gap = 2.0**-20
    assert_allclose(pair_cost(h, y, "hr", 1), 2 * gap / 16, rtol=1e-12)
    assert_allclose(pair_cost(h, y, "hr", 2), 2 * gap**2 / 16, rtol=1e-12)
    assert_allclose(pair_cost(h, y, "hmp", 2), 2 * (1 + gap) ** 2 / 16, rtol=1e-12)


def test_svr_without_epsilon_is_mp_and_a_wide_one_forgives_everything() -> None:
    rng = np.random.default_rng(2)
    h, y = rng.normal(size=50), rng.normal(size=50)
    for power in (1, 2):
        assert_allclose(pair_cost(h, y, "svr", power), pair_cost(h, y, "mp", power), rtol=1e-12)  # type: ignore[arg-type]
        assert pair_cost(h, y, "svr", power, 100.0) == 0.0  # type: ignore[arg-type]
    assert pair_cost(h, y, "mp", 1) == mean_1norm_difference(h, y)
    assert pair_cost(h, y, "mp", 2) == mean_squared_difference(h, y)


def test_right_order_costs_nothing_and_none_is_not_zero() -> None:
    y = [1.0, 2.0, 2.0, 5.0]
    for power in (1, 2):
        for cost in ("hr", "hmp"):
            assert pair_cost([0.1, 0.2, 0.3, 9.0], y, cost, power) == 0.0  # type: ignore[arg-type]
            assert pair_cost([1.0, 2.0], [3.0, 3.0], cost, power) is None  # type: ignore[arg-type]
        for cost in ("hr", "mp", "hmp", "svr"):
            assert pair_cost([], [], cost, power) is None  # type: ignore[arg-type]
            assert pair_cost([1.0], [2.0], cost, power) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hinge",), "cost must be"),
        (("hr", 3), "power must be"),
        (("svr", 1, -0.5), "epsilon must be"),
        (("svr", 1, np.nan), "epsilon must be"),
        (("hr", 1, 0.5), "has no epsilon"),
    ],
)
def test_wrong_costs_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pair_cost([1.0, 2.0], [1.0, 2.0], *arguments)  # type: ignore[arg-type]


scored = st.integers(1, 30).flatmap(
    lambda k: st.lists(
        st.tuples(st.sampled_from([-1.0, 0.0, 0.5]) | st.floats(-9, 9), st.integers(1, k)),
        max_size=60,
    )
)


@given(scored)
def test_costs_are_the_double_sums_however_many_levels(items: list[tuple[float, int]]) -> None:
    """Up to sixteen different ratings are gone through level by level, of more pairs are merged."""
    h, y = [score for score, _ in items], [float(rating) for _, rating in items]
    ordered, order = sort_descending(np.array(h))
    costs, by_rating = discordance(ordered, np.array(y)[order])
    assert by_rating.tolist() == sorted(y, reverse=True)
    misranked = misranked_share(h, y)
    if misranked is None:
        assert np.isnan(costs).all()
        return
    assert costs[MISRANKING] == misranked
    for place, cost, power in ((HR1, "hr", 1), (HR2, "hr", 2), (HMP1, "hmp", 1), (HMP2, "hmp", 2)):
        assert_allclose(costs[place], mean_cost(h, y, cost, power, 0.0), rtol=1e-9, atol=1e-14)
