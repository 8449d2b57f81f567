"""Errors of predicted ratings, item by item: RMSE and MAE of scores clipped to the scale."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.compiled import njit
from spark_rank.metrics.residuals import larger_unit
from spark_rank.metrics.vectors import FloatArray, none_if_nan, pair_of_vectors

Limits = tuple[float, float]
UNLIMITED: Limits = (-math.inf, math.inf)


def root_mean_squared_error(h: ArrayLike, y: ArrayLike, limits: Limits = UNLIMITED) -> float | None:
    """Return √ of the mean of (clip(h_i) − y_i)² over the items: O(m). None without items.

    `limits` are the least and the greatest rating of the scale; a score beyond counts as the limit.
    """
    low, high = checked_limits(limits)
    return none_if_nan(rating_errors(*pair_of_vectors(h, y), low, high)[0])


def mean_absolute_error(h: ArrayLike, y: ArrayLike, limits: Limits = UNLIMITED) -> float | None:
    """Return the mean of |clip(h_i) − y_i| over the items: O(m). None without items."""
    low, high = checked_limits(limits)
    return none_if_nan(rating_errors(*pair_of_vectors(h, y), low, high)[1])


def checked_limits(limits: Limits) -> Limits:
    """Return the least and the greatest rating as numbers, or raise ValueError."""
    low, high = (float(limit) for limit in limits)
    if not low <= high:
        raise ValueError(f"limits must be the least and the greatest rating, not {limits}")
    return low, high


@njit(cache=True)
def rating_errors(h: FloatArray, y: FloatArray, low: float, high: float) -> tuple[float, float]:
    """Return RMSE and MAE of the clipped scores; NaN without items."""
    if len(h) == 0:
        return np.nan, np.nan
    root, mean = _errors(h, y, low, high)
    if not (np.isfinite(root) and np.isfinite(mean)):
        unit = larger_unit(h, y)
        root, mean = _errors(h * unit, y * unit, low * unit, high * unit)
        root, mean = root / unit, mean / unit
    return root, mean


@njit(cache=True)
def _errors(h: FloatArray, y: FloatArray, low: float, high: float) -> tuple[float, float]:
    squares = 0.0
    total = 0.0
    for i in range(len(h)):
        error = min(max(h[i], low), high) - y[i]
        squares += error * error
        total += abs(error)
    return math.sqrt(squares / len(h)), total / len(h)
