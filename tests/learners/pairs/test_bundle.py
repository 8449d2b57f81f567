"""The bundle method on problems whose solution is known, and its small quadratic programme."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from spark_rank.learners.errors import NumericFailureError
from spark_rank.learners.pairs.bundle import Plane, Solution, _evaluate, _search, minimise
from spark_rank.learners.pairs.cutting_planes import Iterate
from spark_rank.learners.pairs.losses import HingeLoss, InsensitiveLoss, PairLoss
from spark_rank.learners.pairs.simplex_qp import Programme, append_plane, solve_simplex_qp

Floats = NDArray[np.float64]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def identity(vector: Floats) -> Floats:
    return vector.copy()


def absolute_loss(targets: Floats, weight: float) -> PairLoss:
    def loss(h: Floats) -> tuple[float, Floats]:
        return weight * float(np.abs(h - targets).sum()), weight * np.sign(h - targets)

    return loss


def squared_loss(targets: Floats, weight: float) -> PairLoss:
    def loss(h: Floats) -> tuple[float, Floats]:
        return 0.5 * weight * float(((h - targets) ** 2).sum()), weight * (h - targets)

    return loss


def solve_qp(gram: Floats, linear: Floats) -> Floats:
    n = len(linear)
    programme = Programme(
        gram.copy(), linear.copy(), np.eye(n)[0].copy(), np.zeros((n, n)), np.zeros(n, np.int64)
    )
    shift = float(np.median(gram.diagonal())) or 1.0
    append_plane(programme, 0, shift, 0)
    size = solve_simplex_qp(programme, n, 1, shift)
    assert size == (programme.weights > 0).sum()
    return programme.weights


def qp_objective(gram: Floats, linear: Floats, weights: Floats) -> float:
    return float(0.5 * weights @ gram @ weights - linear @ weights)


def qp_by_enumeration(gram: Floats, linear: Floats) -> float:
    """Solve the equality-constrained problem on every face of the simplex; take the best."""
    best = np.inf
    n = len(linear)
    for size in range(1, n + 1):
        for face in itertools.combinations(range(n), size):
            system = np.zeros((size + 1, size + 1))
            system[:size, :size] = gram[np.ix_(face, face)]
            system[:size, size] = system[size, :size] = 1.0
            right = np.append(linear[list(face)], 1.0)
            solution = np.linalg.lstsq(system, right, rcond=None)[0][:size]
            if (solution >= -1e-9).all() and abs(solution.sum() - 1.0) < 1e-9:
                weights = np.zeros(n)
                weights[list(face)] = np.maximum(solution, 0.0) / np.maximum(solution, 0.0).sum()
                best = min(best, qp_objective(gram, linear, weights))
    return best


# whole numbers in few dimensions: planes that repeat, cancel, or depend on each other
degenerate_planes = st.tuples(st.integers(1, 7), st.integers(1, 3)).flatmap(
    lambda shape: st.tuples(
        st.lists(
            st.lists(st.integers(-2, 2), min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        ),
        st.lists(st.integers(-3, 3), min_size=shape[0], max_size=shape[0]),
    )
)


@given(degenerate_planes)
@settings(max_examples=300)
def test_qp_with_degenerate_planes(planes: tuple[list[list[int]], list[int]]) -> None:
    vectors, linear = np.array(planes[0], dtype=float), np.array(planes[1], dtype=float)
    gram = vectors @ vectors.T
    weights = solve_qp(gram, linear)
    assert (weights >= 0.0).all()
    assert_allclose(weights.sum(), 1.0, rtol=1e-9)
    expected = qp_by_enumeration(gram, linear)
    assert_allclose(qp_objective(gram, linear, weights), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("spread", [0, 6])
def test_qp_optimality_conditions(spread: int, rng: np.random.Generator) -> None:
    """Planes of very different lengths: no plane may promise descent, none in use may differ."""
    scales = 10.0 ** rng.uniform(-spread / 2, spread / 2, 80)
    vectors = rng.normal(size=(80, 30)) * scales[:, None]
    gram, linear = vectors @ vectors.T, scales * rng.normal(size=80)
    weights = solve_qp(gram, linear)
    gradient = gram @ weights - linear
    level = gradient @ weights
    tolerance = 1e-8 * (np.abs(gradient) @ weights + np.abs(linear) @ weights)
    assert (gradient >= level - tolerance).all()
    assert_allclose(gradient[weights > 0], level, atol=tolerance)


@pytest.mark.parametrize("weight", [0.1, 1.0, 30.0])
def test_soft_threshold(weight: float, rng: np.random.Generator) -> None:
    """min ½‖w‖² + c‖w − t‖₁ is t clipped to [−c, c]; it needs more planes than the first room."""
    targets = rng.normal(size=80) * 2
    solution = minimise(absolute_loss(targets, weight), identity, 80, tol=1e-9, max_iter=1000)
    assert solution.converged
    expected = np.clip(targets, -weight, weight)
    assert_allclose(solution.scores, expected, atol=1e-4)
    minimum = 0.5 * expected @ expected + weight * np.abs(expected - targets).sum()
    assert minimum <= solution.objective * (1 + 1e-12)
    assert solution.objective - minimum <= (solution.gap + 1e-12) * solution.objective


@pytest.mark.parametrize("weight", [0.01, 1.0, 1e6])
def test_ridge(weight: float, rng: np.random.Generator) -> None:
    """Minimise ½‖w‖² + c/2 ‖Xw − t‖²: a smooth loss, the solution in closed form."""
    X, targets = rng.normal(size=(40, 6)), rng.normal(size=40)
    solution = minimise(
        squared_loss(targets, weight), lambda g: X @ (g @ X), 40, tol=1e-11, max_iter=1000
    )
    expected = np.linalg.solve(X.T @ X + np.eye(6) / weight, X.T @ targets)
    assert solution.converged
    assert_allclose(solution.dual @ X, expected, rtol=1e-3, atol=1e-5)
    assert_allclose(solution.scores, X @ (solution.dual @ X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("end", [0.25, 3.0, -1.0])
@pytest.mark.parametrize("weight", [0.5, 2.0])
def test_line_search(end: float, weight: float, rng: np.random.Generator) -> None:
    """On a ray that overshoots, falls short, or leads away, beside a dense grid."""
    targets = rng.normal(size=30)
    loss = absolute_loss(targets, weight)

    def at(step: float) -> Iterate:
        w = step * targets
        return Iterate(w, w, 0.5 * float(w @ w))

    start, stop = _evaluate(at(0.0), loss), _evaluate(at(end), loss)
    found = _search(start, stop, loss)
    grid = [_evaluate(at(end * t), loss).objective for t in np.linspace(0.0, 8.0, 4001)]
    assert found.objective <= min(start.objective, stop.objective)
    assert found.objective - min(grid) <= 0.02 * (start.objective - min(grid))


def test_planes_of_very_different_lengths(rng: np.random.Generator) -> None:
    """With a large C subgradients shrink by many orders of magnitude on the way to the optimum."""
    X = rng.normal(size=(100, 10))
    y = np.clip(np.round(3 + X @ rng.normal(size=10)), 1, 5)
    loss = InsensitiveLoss(y, epsilon=0.25, power=2, weight=1e5)
    solution = minimise(loss, lambda g: X @ (g @ X), 100, tol=1e-6, max_iter=200)
    assert solution.converged


def test_bounds_hold_at_every_stop(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(60, 4)), rng.integers(1, 6, 60).astype(float)
    loss = HingeLoss(y, weight=0.1)

    def run(max_iter: int, tol: float = 1e-12) -> tuple[float, float, bool, int]:
        s = minimise(loss, lambda g: X @ (g @ X), 60, tol=tol, max_iter=max_iter)
        return s.objective, s.gap, s.converged, s.n_iter

    minimum = run(1000, 1e-9)[0]
    gaps = []
    for max_iter in (1, 2, 3, 5, 8, 13):
        objective, gap, converged, n_iter = run(max_iter)
        assert n_iter == max_iter
        assert not converged
        assert objective * (1 - gap) <= minimum * (1 + 1e-9)
        assert objective >= minimum * (1 - 1e-9)
        gaps.append(gap)
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_the_tolerance_is_kept(tol: float, rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(50, 3)), rng.integers(1, 6, 50).astype(float)
    for power in (1, 2):
        loss = InsensitiveLoss(y, epsilon=0.25, power=power, weight=0.01)
        solution = minimise(loss, lambda g: X @ (g @ X), 50, tol=tol, max_iter=1000)
        assert solution.converged
        assert 0.0 <= solution.gap <= tol
        exact = minimise(loss, lambda g: X @ (g @ X), 50, tol=1e-10, max_iter=1000)
        assert solution.objective - exact.objective <= tol * solution.objective


def test_a_known_plane_is_where_the_search_begins(rng: np.random.Generator) -> None:
    """The plane that touches the loss at the optimum says it all; a useless one does no harm."""
    X, targets = rng.normal(size=(40, 6)), rng.normal(size=40)
    loss = squared_loss(targets, 2.0)
    scores = X @ np.linalg.solve(X.T @ X + np.eye(6) / 2.0, X.T @ targets)
    value, slope = loss(scores)
    known = Plane(slope, value - float(slope @ scores))

    def run(known: Plane | None) -> Solution:
        return minimise(loss, lambda g: X @ (g @ X), 40, tol=1e-9, max_iter=100, known=known)

    alone, helped = run(None), run(known)
    assert helped.n_iter == 1 < alone.n_iter
    assert helped.converged
    assert_allclose(helped.objective, alone.objective, rtol=1e-8)
    assert_allclose(helped.scores, scores, atol=1e-6)
    useless = run(Plane(np.zeros(40), 0.0))
    assert useless.converged
    assert_allclose(useless.objective, alone.objective, rtol=1e-8)


def test_nothing_to_gain() -> None:
    loss = InsensitiveLoss(np.array([2.0, 2.0, 2.1]), epsilon=0.5, power=1)
    solution = minimise(loss, identity, 3, tol=1e-4, max_iter=10)
    assert (solution.objective, solution.gap, solution.n_iter) == (0.0, 0.0, 0)
    assert solution.converged


def test_a_kernel_of_zeros_leaves_the_loss_as_it_is() -> None:
    loss = absolute_loss(np.array([1.0, -2.0]), 1.0)
    solution = minimise(loss, np.zeros_like, 2, tol=1e-6, max_iter=10)
    assert solution.converged
    assert solution.objective == 3.0
    assert (solution.scores == 0.0).all()


def test_identical_examples() -> None:
    """All examples at one point: planes of different g have equal or opposite images."""
    targets = np.array([1.0, 2.0, 3.0, 10.0])
    solution = minimise(
        absolute_loss(targets, 1.0), lambda g: np.full(4, g.sum()), 4, tol=1e-9, max_iter=100
    )
    assert solution.converged
    # ½w² + Σ|w − t_i|: below the lowest target the slope is w − 4, above it w − 2
    assert_allclose(solution.scores, 2.0, atol=1e-6)


def test_overflow_is_reported() -> None:
    loss = absolute_loss(np.array([1e200, -1e200]), 1e200)
    with pytest.raises(NumericFailureError, match="scale X down"):
        minimise(loss, lambda g: 1e200 * g, 2, tol=1e-6, max_iter=10)
