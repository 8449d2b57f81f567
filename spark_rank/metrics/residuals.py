"""Kernels of the costs that depend on residuals r = h − y alone: MSD, M1D, c_MP and c_SVR.

Each is a mean over all m² ordered pairs, an item with itself included, as in the papers. A cost
beyond the largest float is infinite. If only an intermediate result overflows, the cost is computed
in a larger unit.
"""

from __future__ import annotations

import math

import numpy as np

from spark_rank.compiled import njit
from spark_rank.metrics.order import sort_descending
from spark_rank.metrics.vectors import FloatArray


@njit(cache=True)
def squared_difference(h: FloatArray, y: FloatArray) -> float:
    """Return the mean of (r_j − r_i)² over all m² pairs, twice the variance; O(m), in two passes.

    NaN with fewer than two items.
    """
    if len(h) < 2:
        return np.nan
    found = _twice_variance(h - y)
    if not np.isfinite(found):
        unit = larger_unit(h, y)
        found = _twice_variance(h * unit - y * unit) / unit / unit
    return found


@njit(cache=True)
def larger_unit(h: FloatArray, y: FloatArray) -> float:
    """Return a power of two that scales all numbers below 1, and their differences below 2."""
    largest = 0.0
    for i in range(len(h)):
        largest = max(largest, abs(h[i]), abs(y[i]))
    return math.ldexp(1.0, -math.frexp(largest)[1])


@njit(cache=True)
def _twice_variance(residuals: FloatArray) -> float:
    m = len(residuals)
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
def insensitive_costs(h: FloatArray, y: FloatArray, epsilon: float) -> tuple[float, float, float]:
    """Return M1D, and the means of max(0, |r_j − r_i| − ε) and of its square over all m² pairs.

    O(m log m). NaN with fewer than two items.
    """
    if len(h) < 2:
        return np.nan, np.nan, np.nan
    mean, first, second = _all_costs(h - y, epsilon)
    if not (np.isfinite(mean) and np.isfinite(second)):
        unit = larger_unit(h, y)
        mean, first, second = _all_costs(h * unit - y * unit, epsilon * unit)
        mean, first, second = mean / unit, first / unit, second / unit / unit
    return mean, first, second


@njit(cache=True)
def _all_costs(residuals: FloatArray, epsilon: float) -> tuple[float, float, float]:
    descending = sort_descending(residuals)[0]
    mean, squares = _sorted_costs(descending, 0.0)
    if epsilon == 0.0:
        return mean, mean, squares
    first, second = _sorted_costs(descending, epsilon)
    return mean, first, second


@njit(cache=True)
def _sorted_costs(residuals: FloatArray, epsilon: float) -> tuple[float, float]:
    """Return the means of `insensitive_costs` for two or more descending residuals, in O(m).

    From high to low, the items that are more than ε above the current one only increase in number
    and distance. So their sum and sum of squares are updated by adding positive terms only, and no
    digits are lost to cancellation.
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
