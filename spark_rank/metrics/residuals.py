"""Kernels of the costs that depend on residuals r = h − y alone: MSD, M1D, c_MP and c_SVR."""

from __future__ import annotations

import numpy as np

from spark_rank.compiled import njit
from spark_rank.metrics.order import sort_descending
from spark_rank.metrics.vectors import FloatArray


@njit(cache=True)
def squared_difference(residuals: FloatArray) -> float:
    """Return the mean of (r_j − r_i)² over all m² pairs, twice the variance; O(m), in two passes.

    NaN with fewer than two items.
    """
    m = len(residuals)
    if m < 2:
        return np.nan
    origin = residuals[0]  # a large common shift would cost the mean its digits
    mean = 0.0
    for i in range(m):
        mean += residuals[i] - origin
    mean /= m
    total = 0.0
    for i in range(m):
        deviation = (residuals[i] - origin) - mean
        total += deviation * deviation
    return 2.0 * total / m


@njit(cache=True)
def insensitive_costs(residuals: FloatArray, epsilon: float) -> tuple[float, float]:
    """Return the means of max(0, |r_j − r_i| − ε) and of its square over all m² pairs.

    O(m log m). NaN with fewer than two items.
    """
    if len(residuals) < 2:
        return np.nan, np.nan
    return sorted_insensitive_costs(sort_descending(residuals)[0], epsilon)


@njit(cache=True)
def sorted_insensitive_costs(residuals: FloatArray, epsilon: float) -> tuple[float, float]:
    """Return the means of `insensitive_costs` for two or more descending residuals, in O(m).

    On the way down, the items at more than ε above the present one only become more, and their
    excesses only grow: their sum and sum of squares are carried from one item to the next by
    adding positive terms, so no digit is lost to cancellation.
    """
    m = len(residuals)
    total = 0.0
    total_of_squares = 0.0
    above = 0
    excess = 0.0
    squares = 0.0
    for i in range(1, m):
        step = residuals[i - 1] - residuals[i]
        squares += step * (2.0 * excess + above * step)
        excess += above * step
        while residuals[above] - residuals[i] > epsilon:
            gap = residuals[above] - residuals[i] - epsilon
            squares += gap * gap
            excess += gap
            above += 1
        total += excess
        total_of_squares += squares
    pairs = float(m) * m
    return 2.0 * total / pairs, 2.0 * total_of_squares / pairs
