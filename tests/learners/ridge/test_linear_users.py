"""Large ridge systems in single precision, refined: the digits of double precision, or none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from spark_rank.learners import MPRank
from spark_rank.learners.ridge.many_users import _solve_refined, fit_users

Floats = np.ndarray


def problem(m: int, d: int, spread: float, seed: int) -> tuple[Floats, Floats]:
    """Return features whose singular values span so many powers of ten, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * 10.0 ** -np.linspace(0.0, spread, d)
    return X, rng.integers(1, 6, m).astype(float)


def system_of(X: Floats, *, primal: bool, ridge: float) -> Floats:
    gram = X.T @ X if primal else X @ X.T
    return gram + ridge * np.eye(len(gram))


@pytest.mark.parametrize("primal", [False, True])
@given(m=st.integers(1, 150), d=st.integers(1, 150), log_ridge=st.floats(-3.0, 6.0),
       spread=st.floats(0.0, 3.0), seed=st.integers(0, 2**32))  # fmt: skip
@settings(max_examples=60)
def test_what_is_refined_has_the_residual_of_double_precision(
    primal: bool, m: int, d: int, log_ridge: float, spread: float, seed: int
) -> None:
    X, y = problem(m, d, spread, seed)
    ridge = 10.0**log_ridge
    wanted = y @ X if primal else y
    found = wanted.copy()
    if _solve_refined(X, primal, found, ridge):
        system = system_of(X, primal=primal, ridge=ridge)
        reach = np.abs(system) @ np.abs(found)
        assert (np.abs(system @ found - wanted) <= 1e-12 * (reach + np.abs(wanted).max())).all()
    else:
        assert_array_equal(found, wanted)


@pytest.mark.parametrize("primal", [False, True])
def test_single_precision_does_where_the_ridge_is_no_dwarf(primal: bool) -> None:
    X, y = problem(200, 140, 1.0, 0)
    wanted = y @ X if primal else y
    found = wanted.copy()
    assert _solve_refined(X, primal, found, 3.0)
    expected = np.linalg.solve(system_of(X, primal=primal, ridge=3.0), wanted)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("scale", "ridge"), [(1.0, 1e-12), (1e25, 1.0)], ids=["singular", "overflow"]
)
def test_where_it_will_not_do_double_precision_does(scale: float, ridge: float) -> None:
    X, y = problem(130, 400, 0.0, 1)
    X *= scale
    X[1] = X[0]
    targets = y.copy()
    assert not _solve_refined(X, False, targets, ridge)
    coefs, intercepts, scores = np.zeros((1, 400)), np.zeros(1), np.zeros(130)
    learned = np.array([True])
    fit_users(X, np.arange(130), np.array([-1]), y, np.array([0, 130]), np.array([130]),
              np.array([1e-6 * scale**2]), learned, coefs, intercepts, scores)  # fmt: skip
    assert learned[0]
    centred, left = X - X.mean(axis=0), y - y.mean()
    residual = left - (scores - y.mean())
    # stationary: the gradient of the penalised squares is zero
    gradient = residual @ centred - 1e-6 * scale**2 * coefs[0]
    assert np.abs(gradient).max() <= 1e-8 * np.abs(centred).max() * np.abs(left).sum()


def test_nothing_to_find_is_found() -> None:
    X, _ = problem(130, 200, 0.0, 2)
    nothing = np.zeros(130)
    assert _solve_refined(X, False, nothing, 1.0)
    assert_array_equal(nothing, np.zeros(130))


@pytest.mark.parametrize("shape", [(40, 5), (130, 70), (20, 30)])
def test_a_ridge_that_is_lost_is_left_to_more_care(shape: tuple[int, int]) -> None:
    """Two columns alike: their weights are equal, and only the ridge says so."""
    X, y = problem(*shape, 0.0, 3)
    X[:, 1] = X[:, 0]
    X *= 1e8
    learned, m = np.array([True]), len(y)
    coefs, intercepts, scores = np.zeros((1, shape[1])), np.zeros(1), np.zeros(m)
    fit_users(X, np.arange(m), np.array([-1]), y, np.array([0, m]), np.array([m]),
              np.array([1.0]), learned, coefs, intercepts, scores)  # fmt: skip
    assert not learned[0]
    coef = MPRank(1.0, ridge="fixed").fit(X, y).coef_
    assert_allclose(coef[0], coef[1], rtol=1e-9)
    assert_allclose(coef, np.linalg.lstsq(X - X.mean(axis=0), y - y.mean())[0], rtol=1e-6)
