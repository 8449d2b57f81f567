"""Kernels against scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from spark_rank.learners import MPRank, RankSVM, SVRank
from spark_rank.learners.kernels import Kernel, scale_gamma

A = np.random.default_rng(0).normal(size=(6, 4))
B = np.random.default_rng(1).normal(size=(3, 4))


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Kernel("linear"), linear_kernel(A, B)),
        (Kernel("rbf", gamma=0.3), rbf_kernel(A, B, gamma=0.3)),
        (Kernel("rbf", gamma=0.3, rbf_weight=2.0), 2.0 * rbf_kernel(A, B, gamma=0.3)),
        (
            Kernel("poly", gamma=0.5, degree=3, coef0=2.0),
            polynomial_kernel(A, B, degree=3, gamma=0.5, coef0=2.0),
        ),
        (
            Kernel("linear+rbf", gamma=0.3, rbf_weight=0.5),
            linear_kernel(A, B) + 0.5 * rbf_kernel(A, B, gamma=0.3),
        ),
    ],
)
def test_values(kernel: Kernel, expected: np.ndarray) -> None:
    assert_allclose(kernel(A, B), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "linear+rbf"])
@pytest.mark.parametrize("m", [1, 5, 64, 65, 150])
def test_triangles_and_sums_are_those_of_the_whole_matrix(name: str, m: int) -> None:
    rng = np.random.default_rng(m)
    left, right, alpha = rng.normal(size=(m, 7)), rng.normal(size=(90, 7)), rng.normal(size=90)
    alpha -= alpha.mean()
    kernel = Kernel(name, gamma=0.4, rbf_weight=0.3)
    assert_allclose(np.triu(kernel.upper(left)), np.triu(kernel(left, left)), rtol=1e-12)
    sums = kernel.balanced_sums(left, right, alpha)
    assert_allclose(sums, kernel(left, right) @ alpha, atol=1e-12)


@given(st.floats(0.0, 1e4))
def test_the_compiled_exponential_is_numpys(squared: float) -> None:
    near = np.sqrt(squared) * np.eye(1)
    value = Kernel("rbf", gamma=1.0)(near, np.zeros((1, 1)))[0, 0]
    # at less than e^-708 nothing is left but a number that is as good as 0
    expected = max(np.exp(-squared), np.exp(-708.0))
    assert_allclose(value, expected, rtol=1e-12)


def test_a_point_without_a_place_has_no_kernel_value() -> None:
    values = Kernel("linear+rbf", gamma=1.0)(np.array([[np.nan], [np.inf], [1.0]]), np.eye(1))
    assert np.isnan(values[:2]).all()
    assert values[2, 0] == 2.0


def test_a_point_is_at_distance_zero_from_itself() -> None:
    far = A + 1e6  # cancellation must not make a squared distance negative
    assert (Kernel("rbf", gamma=10.0)(far, far) <= 1.0).all()


def test_the_default_width_follows_the_spread() -> None:
    assert_allclose(scale_gamma(A), 1.0 / A.var(axis=0).sum())
    assert scale_gamma(np.full((7, 2), 0.1)) == 1.0
    assert scale_gamma(np.empty((3, 0))) == 1.0


@pytest.mark.parametrize("shift", [1e3, 1e7, 1e8])
def test_the_default_width_is_that_of_distances(shift: float) -> None:
    """A shifted column, as of years, leaves the distances between the rows as they are."""
    X = A.copy()
    X[:, 1] += shift
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    assert_allclose(scale_gamma(X), 2.0 / squares.mean(), rtol=1e-6)
    assert_allclose(scale_gamma(X), scale_gamma(A), rtol=1e-6)


@pytest.mark.parametrize("shift", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("learner", [MPRank, SVRank, RankSVM])
def test_gaussians_know_distances_only(shift: float, learner: Any) -> None:
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(60, 4)) + shift, rng.normal(size=(9, 4)) + shift
    y = rng.integers(1, 6, 60).astype(float)
    far = learner(kernel="rbf", gamma=0.25).fit(X, y).decision_function(new)
    # the same distances to the last bit: differences of neighbours in floating point are exact
    near = learner(kernel="rbf", gamma=0.25).fit(X - shift, y).decision_function(new - shift)
    assert_allclose(far, near, atol=1e-6 * np.ptp(near))
