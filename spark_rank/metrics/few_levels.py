"""The costs of misordered pairs for ratings with few levels, such as the stars of a rating scale.

The items are visited once, by descending score. For every level, sums over the visited items with
lower ratings are kept: these are the items with which the next item of that level is misordered.
O(m k) for k levels, without unpredictable branches.
"""

from __future__ import annotations

import numpy as np

from spark_rank.compiled import njit
from spark_rank.metrics.vectors import FloatArray, IntArray

_MOST = 16
# the sums per level over the visited lower items, in rows of this length: number; distances in
# scores, their squares; distances in ratings, their products with those in scores, their squares
_COUNT, _DEPTH, _DEPTH_SQUARES, _FALL, _PRODUCTS, _FALL_SQUARES = (_MOST * row for row in range(6))


@njit(cache=True)
def few_levels(ratings: FloatArray) -> FloatArray:
    """Return the distinct ratings, ascending; an empty array if they are not few."""
    levels = np.empty(_MOST)
    n = 0
    for rating in ratings:
        place = _level_of(rating, levels[:n])
        if place < n and levels[place] == rating:
            continue
        if n == _MOST:
            return levels[:0]
        for i in range(n, place, -1):
            levels[i] = levels[i - 1]
        levels[place] = rating
        n += 1
    return levels[:n]


@njit(cache=True)
def _level_of(rating: float, levels: FloatArray) -> int:
    """Return the number of lower levels, without a branch."""
    lower = 0
    for level in range(len(levels)):
        lower += levels[level] < rating
    return lower


@njit(cache=True)
def costs_by_level(
    scores: FloatArray, ratings: FloatArray, levels: FloatArray
) -> tuple[int, float, float, float, float, IntArray]:
    """Return (wrong pairs, c_HR¹, c_HR², c_HMP¹, c_HMP²) as sums, and the items of every level.

    Pairs of equal scores and unequal ratings are wrong and have cost 0. Distances are updated by
    adding positive terms only, so no digits are lost to cancellation.

    Parameters
    ----------
    scores
        Descending.
    ratings
        The ratings of the same items; equal scores may stand in any order.
    levels
        The levels of the ratings, from `few_levels`.
    """
    m = len(scores)
    met = np.zeros(6 * _MOST)
    counts = np.zeros(len(levels), np.int64)
    wrong, tied = 0.0, 0
    hr1, hr2, hmp1, hmp2 = 0.0, 0.0, 0.0, 0.0
    start = 0
    while start < m:
        if start > 0:
            _go_down(met, levels, scores[start - 1] - scores[start])
        stop = start + 1
        while stop < m and scores[stop] == scores[start]:
            stop += 1
        if stop - start > 1:
            tied += _unequal_pairs(ratings[start:stop], levels)
        for i in range(start, stop):
            own = _level_of(ratings[i], levels)
            counts[own] += 1
            depth, fall = met[_DEPTH + own], met[_FALL + own]
            wrong += met[_COUNT + own]
            hr1 += depth
            hr2 += met[_DEPTH_SQUARES + own]
            hmp1 += depth + fall
            hmp2 += met[_DEPTH_SQUARES + own] + (
                2.0 * met[_PRODUCTS + own] + met[_FALL_SQUARES + own]
            )
        for i in range(start, stop):
            _meet(met, ratings[i], levels)
        start = stop
    return int(wrong) + tied, hr1, hr2, hmp1, hmp2, counts


@njit(cache=True)
def _go_down(met: FloatArray, levels: FloatArray, step: float) -> None:
    """Update the distances to the visited items for a score that is lower by `step`."""
    for level in range(len(levels)):
        count, depth = met[_COUNT + level], met[_DEPTH + level]
        met[_DEPTH_SQUARES + level] += step * (2.0 * depth + count * step)
        met[_DEPTH + level] = depth + count * step
        met[_PRODUCTS + level] += step * met[_FALL + level]


@njit(cache=True)
def _meet(met: FloatArray, rating: float, levels: FloatArray) -> None:
    """Add an item with the current score to the sums of all levels above its own."""
    for level in range(len(levels)):
        fall = max(levels[level] - rating, 0.0)
        met[_COUNT + level] += 1.0 if fall > 0.0 else 0.0
        met[_FALL + level] += fall
        met[_FALL_SQUARES + level] += fall * fall


@njit(cache=True)
def _unequal_pairs(ratings: FloatArray, levels: FloatArray) -> int:
    """Count the pairs of unequal ratings."""
    m = len(ratings)
    counts = np.zeros(len(levels), np.int64)
    for rating in ratings:
        counts[_level_of(rating, levels)] += 1
    pairs = m * (m - 1) // 2
    for count in counts:
        pairs -= int(count * (count - 1) // 2)
    return pairs
