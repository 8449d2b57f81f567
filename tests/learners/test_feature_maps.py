"""The explicit map of the polynomial kernel, term by term."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from spark_rank.learners.feature_maps import polynomial_features


@pytest.mark.parametrize("width", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("gamma", [1.0, 0.3])
def test_terms_are_those_of_the_square_in_their_order(width: int, gamma: float) -> None:
    X = np.random.default_rng(width).normal(size=(7, width))
    expected = []
    for z in np.sqrt(gamma) * X:
        single = [np.sqrt(2.0) * own for own in z]
        pairs = [single[i] * z[j] for i, j in combinations(range(width), 2)]
        expected.append([1.0, *single, *(own * own for own in z), *pairs])
    np.testing.assert_array_equal(polynomial_features(X, gamma), expected)


def test_any_memory_order_gives_the_same_terms() -> None:
    X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    wanted = polynomial_features(X.astype(np.float64))
    for same in (X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist()):
        np.testing.assert_array_equal(polynomial_features(same), wanted)


def test_what_was_given_is_left_alone() -> None:
    X = np.random.default_rng(1).normal(size=(5, 3))
    X.flags.writeable = False
    before = X.copy()
    polynomial_features(X)[:] = 0.0
    np.testing.assert_array_equal(X, before)
