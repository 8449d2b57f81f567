"""The pair losses beside double sums over explicit pairs."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import check_grad

from spark_rank.learners.pairs.losses import HingeLoss, InsensitiveLoss, PairLoss, misranked_pairs

Floats = NDArray[np.float64]

# halves: many ties, and many pairs exactly at epsilon or at the margin
halves = st.integers(-8, 8).map(lambda n: n / 2)
vectors = st.integers(1, 25).flatmap(
    lambda m: st.tuples(
        st.lists(halves | st.floats(-3, 3), min_size=m, max_size=m).map(np.array),
        st.lists(halves, min_size=m, max_size=m).map(np.array),
    )
)
epsilons = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0])
powers = st.sampled_from([1, 2])


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def insensitive_sum(h: Floats, y: Floats, epsilon: float, power: int) -> float:
    """Eq. 7 summed over all ordered pairs, as in eq. 9."""
    total = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            difference = abs((h[j] - h[i]) - (y[j] - y[i]))
            total += max(0.0, difference - epsilon) ** power
    return total


def hinge_sum(h: Floats, y: Floats) -> float:
    """Sum the hinge over the pairs in which y_i > y_j."""
    m = len(y)
    pairs = [(i, j) for i in range(m) for j in range(m) if y[i] > y[j]]
    return sum(max(0.0, 1.0 - (h[i] - h[j])) for i, j in pairs)


def double_sum_gradient(h: Floats, y: Floats, epsilon: float) -> Floats:
    """Differentiate the squared cost pair by pair."""
    gradient = np.zeros(len(y))
    for i in range(len(y)):
        for j in range(len(y)):
            difference = (h[j] - h[i]) - (y[j] - y[i])
            slope = 2.0 * np.sign(difference) * max(0.0, abs(difference) - epsilon)
            gradient[j] += slope
            gradient[i] -= slope
    return gradient


def losses(y: Floats) -> list[PairLoss]:
    plain: list[PairLoss] = [
        InsensitiveLoss(y, epsilon=epsilon, power=power, weight=0.5)
        for epsilon in (0.0, 0.5)
        for power in (1, 2)
    ]
    return [*plain, HingeLoss(y, weight=0.5), HingeLoss(y, weight=0.5, offset=y[::-1])]


@given(vectors, epsilons, powers, st.sampled_from([1.0, 0.01]))
def test_insensitive_value(
    pair: tuple[Floats, Floats], epsilon: float, power: int, weight: float
) -> None:
    h, y = pair
    value, _ = InsensitiveLoss(y, epsilon=epsilon, power=power, weight=weight)(h)
    assert_allclose(value, weight * insensitive_sum(h, y, epsilon, power), rtol=1e-12, atol=1e-11)


@given(vectors, epsilons)
def test_squared_insensitive_gradient(pair: tuple[Floats, Floats], epsilon: float) -> None:
    h, y = pair
    _, gradient = InsensitiveLoss(y, epsilon=epsilon, power=2)(h)
    assert_allclose(gradient, double_sum_gradient(h, y, epsilon), rtol=1e-12, atol=1e-11)


@given(vectors)
def test_insensitive_subgradient_counts_pairs(pair: tuple[Floats, Floats]) -> None:
    h, y = pair
    residuals = np.round(2 * h) / 2 - y  # halves: differences are exact
    _, subgradient = InsensitiveLoss(y, epsilon=0.5, power=1)(residuals + y)
    differences = residuals[:, None] - residuals[None, :]
    counts = (differences > 0.5).sum(axis=1) - (differences < -0.5).sum(axis=1)
    # each unordered pair stands twice in the double sum
    assert_allclose(subgradient, 2.0 * counts, rtol=0, atol=0)


@given(vectors, st.sampled_from([1.0, 3.0]))
def test_hinge_value(pair: tuple[Floats, Floats], weight: float) -> None:
    h, y = pair
    value, _ = HingeLoss(y, weight=weight)(h)
    assert_allclose(value, weight * hinge_sum(h, y), rtol=1e-12, atol=1e-11)


@given(vectors)
def test_hinge_offset_is_added_to_the_scores(pair: tuple[Floats, Floats]) -> None:
    h, y = pair
    offset = np.linspace(-2.0, 1.0, len(y))
    value, subgradient = HingeLoss(y, offset=offset)(h)
    expected, expected_subgradient = HingeLoss(y)(h + offset)
    assert value == expected
    assert_allclose(subgradient, expected_subgradient, rtol=0, atol=0)


@given(vectors, st.data())
def test_subgradient_inequality(pair: tuple[Floats, Floats], data: st.DataObject) -> None:
    """A plane through the oracle's answer is nowhere above the loss: what the bundle relies on."""
    h, y = pair
    other = np.array(data.draw(st.lists(halves, min_size=len(y), max_size=len(y))))
    for loss in losses(y):
        value, subgradient = loss(h)
        slack = 1e-10 * (1.0 + np.abs(subgradient).sum() * (1.0 + np.abs(other - h).max()))
        assert loss(other)[0] >= value + subgradient @ (other - h) - slack


@given(vectors, st.floats(-1e3, 1e3))
def test_blind_to_a_constant(pair: tuple[Floats, Floats], constant: float) -> None:
    h, y = pair
    for loss in losses(y):
        value, subgradient = loss(h)
        scale = 1.0 + np.abs(subgradient).max()
        assert_allclose(subgradient.sum(), 0.0, atol=1e-12 * len(y) * scale)
        assert_allclose(loss(h + constant)[0], value, rtol=1e-9, atol=1e-9)


@given(vectors, st.randoms(use_true_random=False))
def test_order_of_items_does_not_matter(pair: tuple[Floats, Floats], random: Random) -> None:
    h, y = pair
    shuffled = list(range(len(y)))
    random.shuffle(shuffled)
    for make in _makers():
        value, subgradient = make(y)(h)
        other_value, other_subgradient = make(y[shuffled])(h[shuffled])
        assert_allclose(other_value, value, rtol=1e-12, atol=1e-12)
        assert_allclose(other_subgradient, subgradient[shuffled], rtol=1e-12, atol=1e-11)


def _makers() -> list[Callable[[Floats], PairLoss]]:
    return [
        HingeLoss,
        lambda y: InsensitiveLoss(y, epsilon=0.25, power=1),
        lambda y: InsensitiveLoss(y, epsilon=0.25, power=2),
    ]


@pytest.mark.parametrize("epsilon", [0.0, 0.25])
def test_gradient_of_the_squared_cost(epsilon: float, rng: np.random.Generator) -> None:
    y = rng.integers(1, 6, 40).astype(float)
    loss = InsensitiveLoss(y, epsilon=epsilon, power=2, weight=1 / 40**2)
    for _ in range(5):
        error = check_grad(lambda h: loss(h)[0], lambda h: loss(h)[1], rng.normal(size=40))
        assert error < 1e-6


@pytest.mark.parametrize("make", [HingeLoss, lambda y: InsensitiveLoss(y, epsilon=0.1, power=1)])
def test_gradient_between_kinks(
    make: Callable[[Floats], PairLoss], rng: np.random.Generator
) -> None:
    """Continuous scores are at no kink: the subgradient is the gradient."""
    y = rng.integers(1, 4, 12).astype(float)
    loss = make(y)
    h = rng.normal(size=12)
    error = check_grad(lambda h: loss(h)[0], lambda h: loss(h)[1], h, epsilon=1e-6)
    assert error < 1e-6


def test_hinge_with_as_many_levels_as_items(rng: np.random.Generator) -> None:
    y, h = rng.permutation(300).astype(float), rng.normal(size=300)
    margins = 1.0 - (h[:, None] - h[None, :])
    active = (y[:, None] > y[None, :]) & (margins > 0.0)
    value, subgradient = HingeLoss(y)(h)
    assert_allclose(value, margins[active].sum(), rtol=1e-12)
    assert_allclose(subgradient, active.sum(axis=0) - active.sum(axis=1), rtol=0, atol=0)


@given(vectors)
def test_misranked_pairs_counts_ties(pair: tuple[Floats, Floats]) -> None:
    h, y = pair
    values, levels = np.unique(y, return_inverse=True)
    misranked = (y[:, None] > y[None, :]) & (h[:, None] <= h[None, :])
    assert misranked_pairs(h, levels, len(values)) == misranked.sum()


def test_far_scores_lose_no_digits(rng: np.random.Generator) -> None:
    y = rng.integers(1, 6, 50).astype(float)
    h = 1e9 + rng.normal(size=50)
    for power in (1, 2):
        value, _ = InsensitiveLoss(y, epsilon=0.125, power=power)(h)
        # differences before sums, as the papers write it, lose nothing
        residuals = (h - 1e9) - y
        assert_allclose(value, insensitive_sum(residuals, 0 * y, 0.125, power), rtol=1e-6)
    assert_allclose(HingeLoss(y)(h)[0], hinge_sum(h, y), rtol=1e-12)
