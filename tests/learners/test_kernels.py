"""Kernels against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

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


def test_a_point_is_at_distance_zero_from_itself() -> None:
    far = A + 1e6  # cancellation must not make a squared distance negative
    assert (Kernel("rbf", gamma=10.0)(far, far) <= 1.0).all()


def test_the_default_width_follows_the_spread() -> None:
    assert_allclose(scale_gamma(A), 1.0 / (4 * A.var()))
    assert scale_gamma(np.ones((3, 2))) == 1.0
