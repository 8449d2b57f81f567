"""The smoothing Newton method beside closed forms, the bundle method, and its own certificate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.linalg import solve

from spark_rank.learners.pairs.bundle import minimise
from spark_rank.learners.pairs.losses import HingeLoss, InsensitiveLoss
from spark_rank.learners.pairs.smooth_newton import _solve_positive, minimise_by_newton

Floats = NDArray[np.float64]
Loss = InsensitiveLoss | HingeLoss


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def problem(rng: np.random.Generator, m: int, d: int) -> tuple[Floats, Floats]:
    """Return centred features and centred ratings."""
    X = rng.normal(size=(m, d))
    y = np.clip(np.round(3 + X @ rng.normal(size=d) / np.sqrt(d) + rng.normal(size=m)), 1, 5)
    return X - X.mean(axis=0), y - y.mean()


def losses(y: Floats, C: float) -> list[Loss]:
    weight = 0.5 * C / len(y) ** 2
    return [
        InsensitiveLoss(y, epsilon=0.25, power=1, weight=weight),
        InsensitiveLoss(y, epsilon=0.0, power=1, weight=weight),
        InsensitiveLoss(y, epsilon=0.25, power=2, weight=weight),
        HingeLoss(y, weight=weight),
    ]


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e5])
@pytest.mark.parametrize(("m", "d"), [(60, 4), (20, 12), (12, 20)])
def test_the_bundle_method_finds_the_same(
    C: float, m: int, d: int, rng: np.random.Generator
) -> None:
    X, y = problem(rng, m, d)
    for loss in losses(y, C):
        found = minimise_by_newton(X, loss.hinges(), 1e-6, 1000)
        peer = minimise(loss, lambda g: X @ (g @ X), m, tol=1e-8, max_iter=2000)
        assert found.converged
        assert 0.0 <= found.gap <= 1e-6
        exact = loss(X @ found.coef)[0] + 0.5 * found.coef @ found.coef
        assert_allclose(found.objective, exact, rtol=1e-10)
        # both bounds hold for both
        assert found.objective * (1.0 - found.gap) <= peer.objective * (1.0 + 1e-10)
        assert peer.objective * (1.0 - peer.gap) <= found.objective * (1.0 + 1e-10)


@pytest.mark.parametrize("weight", [1e-4, 1.0, 1e4])
def test_one_step_solves_ridge_regression(weight: float, rng: np.random.Generator) -> None:
    """Power 2 without ε is quadratic: ``½‖w‖² + m weight · 2 ‖Xw − y‖²`` for centred X and y."""
    X, y = problem(rng, 50, 5)
    y = y + 0.1 * rng.normal(size=50)  # a tie is at a kink of the second derivative
    y -= y.mean()
    loss = InsensitiveLoss(y, epsilon=0.0, power=2, weight=weight)
    found = minimise_by_newton(X, loss.hinges(), 1e-9, 1000)
    expected = np.linalg.solve(X.T @ X + np.eye(5) / (4 * 50 * weight), X.T @ y)
    assert found.converged
    assert found.n_iter == 1
    assert_allclose(found.coef, expected, rtol=1e-8)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0]), min_size=2, max_size=15),
    st.sampled_from([0.01, 1.0, 100.0, 1e4]),
    st.integers(0, 10**6),
    st.sampled_from([0, 1, 2, 3]),
)
def test_certificate_against_random_directions(
    y: list[float], C: float, seed: int, which: int
) -> None:
    """Features on a coarse grid: repeated items, ties, separable and hopeless problems."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (len(y), 3)).astype(float)
    X -= X.mean(axis=0)
    loss = losses(np.array(y) - np.mean(y), C)[which]
    found = minimise_by_newton(X, loss.hinges(), 1e-4, 1000)
    assert found.converged
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for step in size * rng.normal(size=(10, 3)):
            other = found.coef + step
            value = 0.5 * other @ other + loss(X @ other)[0]
            assert value >= found.objective * (1.0 - found.gap) - 1e-12


def test_bounds_hold_at_every_stop(rng: np.random.Generator) -> None:
    X, y = problem(rng, 25, 8)
    for loss in losses(y, 1e4):
        minimum = minimise_by_newton(X, loss.hinges(), 1e-8, 1000).objective
        for max_iter in range(1, 8):
            early = minimise_by_newton(X, loss.hinges(), 1e-8, max_iter)
            assert early.n_iter <= max_iter
            assert early.converged == (early.gap <= 1e-8)
            assert early.objective * (1 - early.gap) <= minimum * (1 + 1e-10)
            assert early.objective >= minimum * (1 - 1e-8)


def test_the_plane_proves_the_bound(rng: np.random.Generator) -> None:
    """It lies under the loss everywhere, and norm plus plane has the certified minimum."""
    X, y = problem(rng, 40, 5)
    for loss in losses(y, 50.0):
        found = minimise_by_newton(X, loss.hinges(), 1e-5, 1000)
        slope, constant = found.plane_slope, found.plane_constant
        for scores in [*rng.normal(size=(20, 40)), X @ found.coef]:
            assert loss(scores)[0] >= slope @ scores + constant - 1e-9
        bound = constant - 0.5 * np.sum((slope @ X) ** 2)
        assert bound >= found.objective * (1.0 - 1.01e-5)
        assert bound <= found.objective


def test_same_input_same_bits(rng: np.random.Generator) -> None:
    X, y = problem(rng, 40, 5)
    for loss in losses(y, 50.0):
        first = minimise_by_newton(X, loss.hinges(), 1e-6, 100)
        np.full(10_000, 1e300)  # what freed memory holds must not matter
        second = minimise_by_newton(X.copy(), loss.hinges(), 1e-6, 100)
        assert first.coef.tobytes() == second.coef.tobytes()
        assert first.n_iter == second.n_iter


def test_overflow_is_not_hidden(rng: np.random.Generator) -> None:
    X, y = problem(rng, 30, 3)
    for loss in losses(y, 1.0):
        assert not np.isfinite(minimise_by_newton(1e200 * X, loss.hinges(), 1e-4, 50).objective)


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_solve_positive(size: int, rng: np.random.Generator) -> None:
    factor = rng.normal(size=(size, size))
    matrix, right = factor @ factor.T + 0.1 * np.eye(size), rng.normal(size=size)
    expected = solve(matrix, right, assume_a="pos")
    _solve_positive(np.tril(matrix), right)
    assert_allclose(right, expected, rtol=1e-9)
