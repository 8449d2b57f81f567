"""Explicit feature maps: the coordinates in which a kernel is an ordinary dot product."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.learners.base import FloatArray, check_features


def polynomial_features(X: ArrayLike) -> FloatArray:
    """Return φ(x) with φ(x)·φ(x′) = (x·x′ + 1)², the kernel ``poly`` of degree 2.

    The (d+1)(d+2)/2 columns are 1, √2 x_i, x_i², and √2 x_i x_j for i < j: the terms of the
    expanded square, each under the root of its coefficient. O(m d²).
    """
    features = check_features(X)
    n_examples, n_features = features.shape
    left, right = np.triu_indices(n_features, k=1)
    root = np.sqrt(2.0)
    columns = [
        np.ones((n_examples, 1)),
        root * features,
        features**2,
        root * features[:, left] * features[:, right],
    ]
    return np.hstack(columns)
