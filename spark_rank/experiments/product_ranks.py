"""The synthetic ranking problem of Herbrich et al., used by both perceptron papers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

N_RANKS = 5
_THRESHOLDS = (-1.0, -0.1, 0.25, 1.0)


class ProductRanks(NamedTuple):
    """Points of the unit square, their ranks, and the ranks that they have without noise."""

    points: NDArray[np.float64]
    ranks: NDArray[np.int64]
    noiseless: NDArray[np.int64]


def draw_product_ranks(rng: np.random.Generator, n_points: int, noise: float) -> ProductRanks:
    """Draw uniform points with ``y = max { r : 10 (x₁ − ½)(x₂ − ½) + n > c_r }``, n normal.

    The thresholds c are −∞, −1, −0.1, 0.25 and 1.
    """
    points = rng.random((n_points, 2))
    clean = 10.0 * (points[:, 0] - 0.5) * (points[:, 1] - 0.5)
    noisy = clean + noise * rng.standard_normal(n_points)
    return ProductRanks(points, _rank(noisy), _rank(clean))


def _rank(values: NDArray[np.float64]) -> NDArray[np.int64]:
    return 1 + np.searchsorted(_THRESHOLDS, values, side="left").astype(np.int64)
