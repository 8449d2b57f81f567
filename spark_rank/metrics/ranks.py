"""Rank loss and the exact-rank rate; and from scores to ranks.

References
----------
Crammer, Singer: Pranking with Ranking, NIPS 2001 (the rank loss).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.compiled import njit
from spark_rank.metrics.vectors import FloatArray, IntArray, none_if_nan, pair_of_vectors

_FEW = 16  # levels that are compared with a value one by one


def rank_loss(predicted: ArrayLike, ranks: ArrayLike) -> float | None:
    """Return the mean of |ŷ − y| over the items, in ranks: O(m). None without items."""
    return none_if_nan(rank_errors(*_whole_ranks(predicted, ranks))[0])


def exact_rank_rate(predicted: ArrayLike, ranks: ArrayLike) -> float | None:
    """Return the share of items with ŷ = y: O(m). None without items."""
    return none_if_nan(rank_errors(*_whole_ranks(predicted, ranks))[1])


def nearest_ranks(values: ArrayLike, levels: ArrayLike) -> IntArray:
    """Return for every value the rank 1..k of the nearest of k ascending levels: O(m log k).

    A value half way between two levels goes to the lower one.
    """
    numbers, scale = np.array(values, dtype=np.float64), rating_levels(levels)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError("the values to rank must be a vector of finite numbers")
    return np.asarray(nearest_level(numbers, scale) + 1)


def rating_levels(levels: ArrayLike) -> FloatArray:
    """Return the levels of a rating scale as a vector, or raise ValueError."""
    scale = np.array(levels, dtype=np.float64)
    if scale.ndim != 1 or len(scale) == 0 or not np.isfinite(scale).all():
        raise ValueError("levels must be a vector of one or more finite ratings")
    if not (np.diff(scale) > 0).all():
        raise ValueError("levels must ascend, without repetition")
    return scale


def _whole_ranks(predicted: ArrayLike, ranks: ArrayLike) -> tuple[IntArray, IntArray]:
    given = pair_of_vectors(predicted, ranks)
    if any((vector != np.rint(vector)).any() for vector in given):
        raise ValueError("ranks must be whole numbers; nearest_ranks turns scores into ranks")
    return given[0].astype(np.int64), given[1].astype(np.int64)


@njit(cache=True)
def rank_errors(predicted: IntArray, ranks: IntArray) -> tuple[float, float]:
    """Return the mean of |ŷ − y| and the share of ŷ = y; NaN without items."""
    m = len(ranks)
    if m == 0:
        return np.nan, np.nan
    distance = 0
    exact = 0
    for i in range(m):
        distance += abs(predicted[i] - ranks[i])
        exact += predicted[i] == ranks[i]
    return distance / m, exact / m


@njit(cache=True)
def nearest_level(values: FloatArray, levels: FloatArray) -> IntArray:
    """Return for every value the position of the nearest level, the lower one of two as near."""
    above = np.searchsorted(levels, values) if len(levels) > _FEW else _lower_levels(values, levels)
    nearest = np.empty(len(values), np.int64)
    for i in range(len(values)):
        high = min(above[i], len(levels) - 1)
        low = max(high - 1, 0)
        # a choice of values, not of branches: which one it is cannot be foretold
        is_low = values[i] - levels[low] <= levels[high] - values[i]
        nearest[i] = low if is_low else high
    return nearest


@njit(cache=True)
def _lower_levels(values: FloatArray, levels: FloatArray) -> IntArray:
    """Return for every value how many levels are lower, level by level for many values at once."""
    lower = np.zeros(len(values), np.int64)
    for level in levels:
        for i in range(len(values)):
            lower[i] += level < values[i]
    return lower


@njit(cache=True)
def interval_of(values: FloatArray, cuts: FloatArray) -> IntArray:
    """Return for every value how many of the ascending cuts it reaches: its interval, from 0."""
    return np.searchsorted(cuts, values, "right").astype(np.int64)
