"""Explicit feature maps: the coordinates in which a kernel is an ordinary dot product."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.learners.base import FloatArray, check_features
from spark_rank.learners.compiled.feature_maps import write_terms


def polynomial_features(X: ArrayLike, gamma: float = 1.0) -> FloatArray:
    """Return φ(x) with φ(x)·φ(x′) = (γ x·x′ + 1)², the kernel ``poly`` of degree 2.

    With z = √γ x the (d+1)(d+2)/2 columns are 1, √2 z_i, z_i², and √2 z_i z_j for i < j: the
    terms of the expanded square, each under the root of its coefficient. O(m d²).
    """
    scaled = np.ascontiguousarray(np.sqrt(gamma) * check_features(X))
    n_examples, n_features = scaled.shape
    terms = np.empty((n_examples, (n_features + 1) * (n_features + 2) // 2))
    write_terms(scaled, terms)
    return terms
