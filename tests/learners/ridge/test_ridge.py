"""Ridge systems: conjugate gradients against a dense solution, and what Cholesky is left with."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from spark_rank.learners.errors import NumericFailureError
from spark_rank.learners.kernels import Kernel
from spark_rank.learners.ridge import systems
from spark_rank.learners.ridge.systems import solve_centred, solve_ridge

RNG = np.random.default_rng(2)
M = 400  # above the size from which conjugate gradients are taken
X = RNG.normal(size=(M, 12)) / 3.0
Y = RNG.integers(1, 6, size=M).astype(float)


def dense(gram: np.ndarray, y: np.ndarray, strength: float) -> np.ndarray:
    """Return (α, b) from the system with its border of ones, (m + 1) × (m + 1)."""
    m = len(y)
    system = np.ones((m + 1, m + 1))
    system[:m, :m] = gram + strength * np.eye(m)
    system[m, m] = 0.0
    return np.linalg.solve(system, np.append(y, 0.0))


@pytest.mark.parametrize("m", [1, 5, 100, M])
@pytest.mark.parametrize("strength", [3.0, 1e-3])
@pytest.mark.parametrize(
    "kernel", [Kernel("rbf", 0.3), Kernel("linear+rbf", 1.5, rbf_weight=0.2), Kernel("linear")]
)
def test_solutions_are_those_of_the_bordered_system(
    kernel: Kernel, strength: float, m: int
) -> None:
    gram = kernel(X[:m], X[:m])
    expected = dense(gram, Y[:m], strength)
    alpha, constant = solve_centred(kernel.upper(X[:m]), Y[:m], strength)
    scale = np.abs(expected).max()
    assert_allclose(np.append(alpha, constant), expected, rtol=0.0, atol=1e-9 * scale)


def test_many_examples_are_solved_by_steps_and_not_by_cholesky(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(systems, "solve_ridge", None)
    alpha, _ = solve_centred(Kernel("rbf", 0.3).upper(X), Y, 3.0)
    assert abs(alpha.sum()) < 1e-10
    with pytest.raises(TypeError):
        solve_centred(Kernel("rbf", 0.3).upper(X[:100]), Y[:100], 3.0)


def test_too_many_steps_end_in_cholesky(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Kernel("rbf", 30.0)
    expected = dense(wide(X, X), Y, 1e-4)
    monkeypatch.setattr(systems, "_MOST_STEPS", 1)
    alpha, constant = solve_centred(wide.upper(X), Y, 1e-4)
    assert_allclose(np.append(alpha, constant), expected, rtol=0.0, atol=1e-8)


def test_rows_that_repeat_are_no_failure() -> None:
    twice = np.repeat(X[: M // 2], 2, axis=0)
    kernel = Kernel("rbf", 0.3)
    alpha, constant = solve_centred(kernel.upper(twice), Y, 2.0)
    expected = dense(kernel(twice, twice), Y, 2.0)
    assert_allclose(np.append(alpha, constant), expected, rtol=0.0, atol=1e-9)


def test_equal_ratings_have_no_dual() -> None:
    alpha, constant = solve_centred(Kernel("rbf", 0.3).upper(X), np.full(M, 4.0), 2.0)
    assert_array_equal(alpha, 0.0)
    assert constant == 4.0


@pytest.mark.parametrize("m", [3, M])
def test_what_is_no_kernel_matrix_is_refused(m: int) -> None:
    with pytest.raises(NumericFailureError, match="not positive definite"):
        solve_centred(-5.0 * np.eye(m), Y[:m], 1.0)
    with pytest.raises(NumericFailureError, match="overflowed"):
        solve_centred(np.full((m, m), np.inf), Y[:m], 1.0)


def test_a_ridge_system_reads_the_upper_triangle() -> None:
    full = X[:9].T @ X[:9]
    upper = np.where(np.tri(12, dtype=bool).T, full, np.nan)
    expected = np.linalg.solve(full + 0.5 * np.eye(12), X[0])
    assert_allclose(solve_ridge(upper.copy(), X[0], 0.5), expected)
    assert_allclose(solve_ridge(np.asfortranarray(upper), X[0], 0.5), expected)
