"""The empirical ranking margin loss over all pairs, without building them.

References
----------
Mohri, Rostamizadeh, Talwalkar: Foundations of Machine Learning, chapter on ranking.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.compiled import njit
from spark_rank.metrics.discordance import MISRANKING, discordance
from spark_rank.metrics.order import sort_descending
from spark_rank.metrics.vectors import FloatArray, IntArray, none_if_nan, pair_of_vectors


def margin_loss(
    h: ArrayLike, y: ArrayLike, rho: float, form: Literal["ramp", "indicator"] = "ramp"
) -> float | None:
    """Return R̂_ρ, the mean of Φ_ρ(h_i − h_j) over the pairs with y_i > y_j: O(m log m).

    Φ_ρ(z) is 1 for z ≤ 0, 0 for z ≥ ρ, and linear between. So the loss is at least the misranking;
    pairs that are ordered by less than ρ count in part. The ``indicator`` form of the lecture
    counts them in full: the share of the pairs with h_i − h_j ≤ ρ, which is at least the other.
    None if all ratings are equal.
    """
    if not (np.isfinite(rho) and rho > 0.0):
        raise ValueError(f"rho must be a positive number, not {rho}")
    if form not in ("ramp", "indicator"):
        raise ValueError(f"form must be 'ramp' or 'indicator', not {form!r}")
    scores, ratings = pair_of_vectors(h, y)
    if form == "indicator":
        return _share_within(scores, ratings, rho)
    ordered, order = sort_descending(scores)
    by_score = ratings[order]
    costs, by_rating = discordance(ordered, by_score)
    return none_if_nan(sorted_margin_loss(ordered, by_score, by_rating, costs[MISRANKING], rho))


def _share_within(scores: FloatArray, ratings: FloatArray, rho: float) -> float | None:
    """Return the share of the pairs y_i > y_j with h_i − h_j ≤ ρ, by halves of the ratings."""
    order = np.argsort(ratings, kind="stable")
    h, y = scores[order], ratings[order]
    n_pairs, within, parts = 0, 0, [(h, y)] if len(y) else []
    while parts:
        h, y = parts.pop()
        if y[0] == y[-1]:
            continue
        cut = int(np.searchsorted(y, y[len(y) // 2]))
        cut = cut if cut > 0 else int(np.searchsorted(y, y[0], side="right"))
        lower = np.sort(h[:cut])
        n_pairs += cut * (len(y) - cut)
        # the lower ones come with h_j >= h_i − ρ
        within += int((cut - np.searchsorted(lower, h[cut:] - rho, side="left")).sum())
        parts += [(h[:cut], y[:cut]), (h[cut:], y[cut:])]
    return within / n_pairs if n_pairs else None


@njit(cache=True)
def sorted_margin_loss(
    scores: FloatArray, ratings: FloatArray, by_rating: FloatArray, misranking: float, rho: float
) -> float:
    """Return the margin loss of descending scores with these ratings; NaN where all tie.

    `by_rating` are the ratings from high to low, `misranking` the share of misranked pairs.
    """
    m = len(by_rating)
    if np.isnan(misranking):
        return np.nan
    distinct = np.empty(m)
    levels = 0
    equal = 0
    pairs = m * m
    for i in range(m - 1, -1, -1):
        if levels == 0 or by_rating[i] != distinct[levels - 1]:
            pairs -= equal * equal
            equal = 0
            distinct[levels] = by_rating[i]
            levels += 1
        equal += 1
    pairs -= equal * equal
    level_of = np.searchsorted(distinct[:levels], ratings)
    close = _close_pairs(scores, level_of, levels, rho)
    return misranking + close / (pairs // 2)


@njit(cache=True)
def _close_pairs(scores: FloatArray, levels: IntArray, n_levels: int, rho: float) -> float:
    """Return the sum of 1 − (h_i − h_j)/ρ over the pairs of levels l_i > l_j, 0 < h_i − h_j < ρ.

    The descending scores are cut into cells, each less than ρ wide, with the first scores of
    neighbouring cells at least ρ apart. So the two items of such a pair are in the same cell or in
    neighbouring cells, and sums within a cell only grow, by terms of at most ρ. A sliding window
    over all scores would have to subtract items again, and lose digits.
    """
    m = len(scores)
    count = np.zeros(n_levels + 1, np.int64)
    total_gap = np.zeros(n_levels + 1)
    total = 0.0
    before, start = 0, 0
    while start < m:
        stop = start + 1
        while stop < m and scores[start] - scores[stop] < rho:
            stop += 1
        total += _close_within(scores, levels, start, stop, rho, count, total_gap)
        total += _close_across(scores, levels, before, start, stop, rho, count, total_gap)
        before, start = start, stop
    return total / rho


@njit(cache=True)
def _close_within(
    scores: FloatArray,
    levels: IntArray,
    start: int,
    stop: int,
    rho: float,
    count: IntArray,
    total_gap: FloatArray,
) -> float:
    """Sum ρ − (h_i − h_j) over the pairs in a cell; the trees are empty before and after."""
    total = 0.0
    entering = start
    for j in range(start, stop):
        while scores[entering] > scores[j]:
            _insert(count, total_gap, levels[entering], scores[start] - scores[entering])
            entering += 1
        n_above, gaps = _sums_over_higher(count, total_gap, levels[j])
        total += n_above * (rho - (scores[start] - scores[j])) + gaps
    for i in range(start, entering):
        _remove(count, total_gap, levels[i])
    return total


@njit(cache=True)
def _close_across(
    scores: FloatArray,
    levels: IntArray,
    before: int,
    start: int,
    stop: int,
    rho: float,
    count: IntArray,
    total_gap: FloatArray,
) -> float:
    """Sum ρ − (h_i − h_j) over the pairs with i in the cell before and j in this one."""
    total = 0.0
    first = start
    for j in range(stop - 1, start - 1, -1):
        while first > before and scores[first - 1] - scores[j] < rho:
            first -= 1
            _insert(count, total_gap, levels[first], scores[first] - scores[start])
        n_above, gaps = _sums_over_higher(count, total_gap, levels[j])
        total += n_above * (rho - (scores[start] - scores[j])) - gaps
    for i in range(first, start):
        _remove(count, total_gap, levels[i])
    return total


# Fenwick trees over the levels from the highest down


@njit(cache=True)
def _insert(count: IntArray, total_gap: FloatArray, level: int, gap: float) -> None:
    node = len(count) - 1 - level
    while node < len(count):
        count[node] += 1
        total_gap[node] += gap
        node += node & -node


@njit(cache=True)
def _remove(count: IntArray, total_gap: FloatArray, level: int) -> None:
    """Reset all nodes that count an item of this level."""
    node = len(count) - 1 - level
    while node < len(count):
        count[node] = 0
        total_gap[node] = 0.0
        node += node & -node


@njit(cache=True)
def _sums_over_higher(count: IntArray, total_gap: FloatArray, level: int) -> tuple[int, float]:
    """Return the number of inserted items of a higher level, and the sum of their gaps."""
    number = 0
    gaps = 0.0
    node = len(count) - 2 - level
    while node > 0:
        number += count[node]
        gaps += total_gap[node]
        node -= node & -node
    return number, gaps
