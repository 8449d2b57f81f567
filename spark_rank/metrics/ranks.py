"""Rank loss, exact-rank rate, and ranks from scores.

References
----------
Crammer, Singer: Pranking with Ranking, NIPS 2001 (the rank loss).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.compiled import njit
from spark_rank.metrics.vectors import FloatArray, IntArray, none_if_nan, pair_of_vectors
from spark_rank.rank_rule import cuts_between, ranks_from_scores


def rank_loss(predicted: ArrayLike, ranks: ArrayLike) -> float | None:
    """Return the mean of |ŷ − y| over the items, in ranks: O(m). None without items."""
    return none_if_nan(rank_errors(*_whole_ranks(predicted, ranks))[0])


def exact_rank_rate(predicted: ArrayLike, ranks: ArrayLike) -> float | None:
    """Return the share of items with ŷ = y: O(m). None without items."""
    return none_if_nan(rank_errors(*_whole_ranks(predicted, ranks))[1])


def nearest_ranks(values: ArrayLike, levels: ArrayLike) -> IntArray:
    """Return for every value the rank 1..k of the nearest of k ascending levels: O(m log k).

    A value half way between two levels goes to the higher one (`spark_rank.rank_rule`).
    """
    numbers, scale = np.array(values, dtype=np.float64), rating_levels(levels)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError("the values to rank must be a vector of finite numbers")
    return ranks_from_scores(numbers, cuts_between(scale))


def rating_levels(levels: ArrayLike) -> FloatArray:
    """Return the levels of a rating scale as a vector, or raise ValueError."""
    scale = np.array(levels, dtype=np.float64)
    if scale.ndim != 1 or len(scale) == 0 or not np.isfinite(scale).all():
        raise ValueError("levels must be a vector of one or more finite ratings")
    if not (scale[1:] > scale[:-1]).all():
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
