"""The kernel of all costs of misordered pairs: misranking, c_HR and c_HMP.

A pair is discordant if scores and ratings order it in opposite ways. If ratings have few levels,
`few_levels` sums up the pairs level by level. Otherwise a merge sort by rating, of items that are
sorted by score, visits every discordant pair once, as in Knight's algorithm for Kendall's τ; here
it sums up not only their number but also their distances.

References
----------
Cortes, Mohri, Rastogi: An Alternative Ranking Problem for Search Engines, eqs. 4, 6 and 69.
Knight: A Computer Method for Calculating Kendall's Tau with Ungrouped Data, JASA 61, 1966.
"""

from __future__ import annotations

import numpy as np

from spark_rank.compiled import njit
from spark_rank.metrics.few_levels import costs_by_level, few_levels
from spark_rank.metrics.order import sort_descending
from spark_rank.metrics.residuals import larger_unit
from spark_rank.metrics.vectors import FloatArray

# places in the vector of results
MISRANKING, HR1, HR2, HMP1, HMP2 = range(5)
_RESULTS = 5
_RUN = 16  # runs this short are sorted by insertion, pair by pair


@njit(cache=True)
def discordance(scores: FloatArray, ratings: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (misranking, c_HR¹, c_HR², c_HMP¹, c_HMP²) and the ratings from high to low.

    Misranking is a share of the pairs of unequal ratings, the costs are means over all m² ordered
    pairs. All five are NaN where there are no two unequal ratings; a cost beyond the largest float
    is infinite. O(m log m); with few levels of ratings O(m).

    Parameters
    ----------
    scores
        Descending.
    ratings
        The ratings of the same items; equal scores may stand in any order.
    """
    found, y = _in_this_unit(scores, ratings)
    if not np.isnan(found[MISRANKING]) and not np.isfinite(found).all():
        unit = larger_unit(scores, ratings)
        scaled = _in_this_unit(scores * unit, ratings * unit)[0] / unit
        scaled[HR2] /= unit
        scaled[HMP2] /= unit
        scaled[MISRANKING] = found[MISRANKING]
        found = scaled
    return found, y


@njit(cache=True)
def _in_this_unit(scores: FloatArray, ratings: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Do what `discordance` does, with costs that may not be finite."""
    levels = few_levels(ratings)
    if len(levels) > 0:
        return _by_level(scores, ratings, levels)
    m = len(scores)
    y = ratings.copy()
    tied = _sort_within_ties(scores, y)
    sums = np.zeros(_RESULTS)
    y = _merge_by_rating(scores, y, sums)
    pairs = m * (m - 1) // 2 - _equal_pairs(y)
    wrong = int(sums[MISRANKING]) + tied
    return _as_means(wrong, sums[HR1], sums[HR2], sums[HMP1], sums[HMP2], pairs, m), y


@njit(cache=True)
def _by_level(
    scores: FloatArray, ratings: FloatArray, levels: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Do what `discordance` does, for ratings with these levels."""
    m = len(scores)
    wrong, hr1, hr2, hmp1, hmp2, counts = costs_by_level(scores, ratings, levels)
    pairs = m * (m - 1) // 2
    y = np.empty(m)
    place = 0
    for level in range(len(levels) - 1, -1, -1):
        pairs -= counts[level] * (counts[level] - 1) // 2
        y[place : place + counts[level]] = levels[level]
        place += counts[level]
    return _as_means(wrong, hr1, hr2, hmp1, hmp2, pairs, m), y


@njit(cache=True)
def _as_means(
    wrong: int, hr1: float, hr2: float, hmp1: float, hmp2: float, pairs: int, m: int
) -> FloatArray:
    """Return the vector of results from sums over pairs, of which `pairs` have unequal ratings."""
    found = np.full(_RESULTS, np.nan)
    if pairs > 0:
        share = 2.0 / (float(m) * m)
        found[MISRANKING] = wrong / pairs
        found[HR1], found[HR2] = hr1 * share, hr2 * share
        found[HMP1], found[HMP2] = hmp1 * share, hmp2 * share
    return found


@njit(cache=True)
def _sort_within_ties(scores: FloatArray, y: FloatArray) -> int:
    """Sort the ratings of equal scores from high to low, so that none of these pairs is discordant.

    Returns the number of pairs with equal scores and unequal ratings.
    """
    m = len(y)
    pairs = 0
    start = 0
    while start < m:
        stop = start + 1
        while stop < m and scores[stop] == scores[start]:
            stop += 1
        if stop - start > 1:
            y[start:stop] = sort_descending(y[start:stop])[0]
            size = stop - start
            pairs += size * (size - 1) // 2 - _equal_pairs(y[start:stop])
        start = stop
    return pairs


@njit(cache=True)
def _equal_pairs(y: FloatArray) -> int:
    """Count the pairs of equal values in a sorted vector."""
    pairs = 0
    run = 0
    for i in range(1, len(y)):
        run = run + 1 if y[i] == y[i - 1] else 0
        pairs += run
    return pairs


@njit(cache=True)
def _merge_by_rating(scores: FloatArray, ratings: FloatArray, sums: FloatArray) -> FloatArray:
    """Sort the ratings from high to low and add up the discordant pairs into `sums`."""
    m = len(scores)
    y, s = ratings, scores.copy()
    other_y, other_s = np.empty(m), np.empty(m)
    for start in range(0, m, _RUN):
        _sort_run(y, s, start, min(start + _RUN, m), sums)
    width = _RUN
    while width < m:
        for start in range(0, m, 2 * width):
            middle = min(start + width, m)
            stop = min(middle + width, m)
            if middle < stop:
                origin = scores[middle]
                _merge(y, s, start, middle, stop, origin, other_y, other_s, sums)
            else:
                for i in range(start, stop):
                    other_y[i], other_s[i] = y[i], s[i]
        y, other_y = other_y, y
        s, other_s = other_s, s
        width *= 2
    return y


@njit(cache=True)
def _sort_run(y: FloatArray, s: FloatArray, start: int, stop: int, sums: FloatArray) -> None:
    """Sort a run of descending scores by rating; what an item passes is discordant with it."""
    n_pairs = 0
    hr1, hr2, hmp1, hmp2 = 0.0, 0.0, 0.0, 0.0
    for i in range(start + 1, stop):
        rating, score = y[i], s[i]
        j = i
        while j > start and y[j - 1] < rating:
            distance = s[j - 1] - score
            residual_distance = distance + (rating - y[j - 1])
            hr1 += distance
            hr2 += distance * distance
            hmp1 += residual_distance
            hmp2 += residual_distance * residual_distance
            y[j] = y[j - 1]
            s[j] = s[j - 1]
            j -= 1
        n_pairs += i - j
        y[j] = rating
        s[j] = score
    _add(sums, n_pairs, hr1, hr2, hmp1, hmp2)


@njit(cache=True)
def _merge(
    y: FloatArray,
    s: FloatArray,
    start: int,
    middle: int,
    stop: int,
    origin: float,
    merged_y: FloatArray,
    merged_s: FloatArray,
    sums: FloatArray,
) -> None:
    """Merge two runs of descending ratings, the left one with the higher scores.

    A discordant pair has its lower rating on the left. Its distance in scores is the height of the
    left score over `origin`, a score between the runs, plus the depth of the right score below
    `origin`; its distance in residuals is that plus the distance in ratings. While the left rating
    falls, the right items rated above it increase in number and distance. So the sums over them are
    updated by adding positive terms only, and no digits are lost to cancellation.
    """
    n_pairs = 0
    hr1, hr2, hmp1, hmp2 = 0.0, 0.0, 0.0, 0.0
    depth, depth_squares = 0.0, 0.0  # of the right items rated above the left one
    reach, reach_squares = 0.0, 0.0  # the same plus the distance in ratings
    right = middle
    place = start
    for left in range(start, middle):
        count = right - middle
        if count > 0:
            fall = y[left - 1] - y[left]
            reach_squares += fall * (2.0 * reach + count * fall)
            reach += count * fall
        while right < stop and y[right] > y[left]:
            below = origin - s[right]
            distance = below + (y[right] - y[left])
            depth += below
            depth_squares += below * below
            reach += distance
            reach_squares += distance * distance
            merged_y[place] = y[right]
            merged_s[place] = s[right]
            place += 1
            right += 1
        merged_y[place] = y[left]
        merged_s[place] = s[left]
        place += 1
        count = right - middle
        height = s[left] - origin
        n_pairs += count
        hr1 += count * height + depth
        hr2 += height * (count * height + 2.0 * depth) + depth_squares
        hmp1 += count * height + reach
        hmp2 += height * (count * height + 2.0 * reach) + reach_squares
    for i in range(right, stop):
        merged_y[i], merged_s[i] = y[i], s[i]
    _add(sums, n_pairs, hr1, hr2, hmp1, hmp2)


@njit(cache=True)
def _add(sums: FloatArray, n_pairs: int, hr1: float, hr2: float, hmp1: float, hmp2: float) -> None:
    sums[MISRANKING] += n_pairs
    sums[HR1] += hr1
    sums[HR2] += hr2
    sums[HMP1] += hmp1
    sums[HMP2] += hmp2
