"""Explicit feature maps: the coordinates in which a kernel is an ordinary dot product."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.learners.base import FloatArray, check_features


def polynomial_features(X: ArrayLike, gamma: float = 1.0) -> FloatArray:
    """Return φ(x) with φ(x)·φ(x′) = (γ x·x′ + 1)², the kernel ``poly`` of degree 2.

    With z = √γ x the (d+1)(d+2)/2 columns are 1, √2 z_i, z_i², and √2 z_i z_j for i < j: the
    terms of the expanded square, each under the root of its coefficient. O(m d²).
    """
    features = np.sqrt(gamma) * check_features(X)
    n_examples, n_features = features.shape
    left, right = np.triu_indices(n_features, k=1)
    mapped = np.empty((n_examples, 1 + 2 * n_features + len(left)))
    single, squares, pairs = np.split(mapped[:, 1:], [n_features, 2 * n_features], axis=1)
    mapped[:, 0] = 1.0
    np.multiply(np.sqrt(2.0), features, out=single)
    np.square(features, out=squares)
    np.multiply(single[:, left], features[:, right], out=pairs)
    return mapped
