"""Compiled hinge costs over pairs of items: value, gradient and curvature, without building pairs.

Items are in groups. For every counted pair of groups (A, B), every i in A and j in B is a pair with
excess ``t = s_j − s_i − margin`` and cost ``weight · max(0, t)^n``. SVRank has one group, paired
with itself, and margin ε; RankSVM pairs each level with each lower level, with margin −1.

With power 1 the slope of a pair is smoothed: it grows from 0 to 1 while t crosses a zone of some
width around the kink. These slopes are feasible in the dual, so the plane that they define is below
the cost; its distance from the cost at the current scores is the `slack`. With the items of each
group sorted by score, the pairs of one j in the zone are a window of A, and so are those on the
slope 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.compiled.bucket_sort import sort_with_items

IntArray = NDArray[np.int64]


class PairHinges(NamedTuple):
    """The pairs and their cost.

    Attributes
    ----------
    shift : m numbers; the scores s are ``Φw + shift``.
    items : the m items, group by group.
    starts : where each group begins in `items`, and m at the end.
    groups : one row (A, B) for every counted pair of groups.
    margin, power, weight : of the cost of a pair; power 1 or 2.
    """

    shift: FloatArray
    items: IntArray
    starts: IntArray
    groups: IntArray
    margin: float
    power: int
    weight: float


class Sorted(NamedTuple):
    """The items of each group by score, and the windows of the last evaluation.

    ``low[p, j]`` to ``high[p, j]`` are the positions of the pairs of j in the zone of the p-th
    pair of groups. By position of i, `entered` and `left` count the j whose windows begin and end
    there, with the sums of their excesses there; `full` is a difference of numbers of pairs on
    the slope 1. `prefix` holds sums of the scores.
    """

    items: IntArray
    values: FloatArray
    prefix: FloatArray
    low: IntArray
    high: IntArray
    full: IntArray
    entered: IntArray
    left: IntArray
    entered_sum: FloatArray
    left_sum: FloatArray


@njit(cache=True, nogil=True, error_model="numpy")
def room_for(hinges: PairHinges) -> Sorted:
    """Return unfilled arrays for these pairs. O(m) for each pair of groups."""
    m = hinges.shift.shape[0]
    n_pairs = hinges.groups.shape[0]
    return Sorted(
        np.empty(m, np.int64),
        np.empty(m),
        np.zeros(m + 1),
        np.empty((n_pairs, m), np.int64),
        np.empty((n_pairs, m), np.int64),
        np.empty(m + 1, np.int64),
        np.empty(m + 1, np.int64),
        np.empty(m + 1, np.int64),
        np.empty(m + 1),
        np.empty(m + 1),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def sort_scores(hinges: PairHinges, scores: FloatArray, room: Sorted) -> None:
    """Sort the items of each group by score; prefix sums of the scores. O(m)."""
    starts = hinges.starts
    for position in range(scores.shape[0]):
        room.items[position] = hinges.items[position]
        room.values[position] = scores[hinges.items[position]]
    for group in range(starts.shape[0] - 1):
        first, last = starts[group], starts[group + 1]
        sort_with_items(room.items[first:last], room.values[first:last])
    for position in range(scores.shape[0]):
        room.prefix[position + 1] = room.prefix[position] + room.values[position]


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(
    hinges: PairHinges, room: Sorted, width: float, pulls: FloatArray
) -> tuple[float, float]:
    """Return the cost at the sorted scores and the slack; write the smoothed gradient to `pulls`.

    `width` is that of the zone for power 1; power 2 is smooth and has no slack. The pulls sum to
    0. O(m) for each pair of groups.
    """
    for position in range(pulls.shape[0] + 1):
        room.full[position] = room.entered[position] = room.left[position] = 0
        room.entered_sum[position] = room.left_sum[position] = 0.0
    for position in range(pulls.shape[0]):
        pulls[position] = 0.0
    cost = 0.0
    slack = 0.0
    for pair in range(hinges.groups.shape[0]):
        pair_cost, pair_slack = _slide_windows(hinges, room, pair, width, pulls)
        cost += pair_cost
        slack += pair_slack
    _pull_back(hinges, room, width, pulls)
    return hinges.weight * max(cost, 0.0), hinges.weight * max(slack, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _slope_and_level(power: int, width: float) -> tuple[float, float]:
    """Return a and b of the slope ``a t + b`` of a pair in the zone."""
    return (1.0, 0.0) if power == 2 else (1.0 / width, 0.5)


@njit(cache=True, nogil=True, error_model="numpy")
def _slide_windows(
    hinges: PairHinges, room: Sorted, pair: int, width: float, pulls: FloatArray
) -> tuple[float, float]:
    """Find the window of every j; return the cost of the pairs and the slack.

    The gradient of j is added to `pulls`, the parts for the items i are stored in `room`.
    """
    starts, values, prefix = hinges.starts, room.values, room.prefix
    first, last = starts[hinges.groups[pair, 0]], starts[hinges.groups[pair, 0] + 1]
    begin, end = starts[hinges.groups[pair, 1]], starts[hinges.groups[pair, 1] + 1]
    smooth = hinges.power == 2
    slope, level = _slope_and_level(hinges.power, width)
    half = 0.0 if smooth else 0.5 * width
    ceiling = np.inf if smooth else half
    low = middle = high = first
    # sums of t over the window, of t² there, and of the t > 0
    total = squares = positive = 0.0
    cost = slack = 0.0
    bar = values[begin] - hinges.margin  # no group is empty
    for j in range(begin, end):
        before = bar
        bar = values[j] - hinges.margin
        # first remove those that leave the zone, so that the sums only count pairs in the zone
        while low < high and bar - values[low] >= ceiling:
            excess = before - values[low]
            low += 1
            total -= excess
            squares -= excess * excess
            positive -= max(excess, 0.0)
        while low < last and bar - values[low] >= ceiling:
            low += 1
        # reset the sums of an empty window, to remove rounding
        if low >= high:
            high = low
            total = squares = 0.0
        if low >= middle:
            middle = low
            positive = 0.0
        rise = bar - before
        squares += rise * (2.0 * total + (high - low) * rise)
        total += (high - low) * rise
        positive += (middle - low) * rise
        while middle < last and bar - values[middle] > 0.0:
            positive += bar - values[middle]
            middle += 1
        while high < last and bar - values[high] > -half:
            excess = bar - values[high]
            total += excess
            squares += excess * excess
            high += 1
        pulls[room.items[j]] += (low - first) + level * (high - low) + slope * total
        if smooth:
            cost += squares
        else:
            cost += (low - first) * bar - (prefix[low] - prefix[first]) + positive
            slack += positive - slope * squares - level * total
        room.low[pair, j], room.high[pair, j] = low, high
        _note_window(room, first, last, low, high, bar)
    if first == begin and half > hinges.margin:
        # an item paired with itself has gradient 0 and cost 0
        slack -= (end - begin) * hinges.margin * (level - slope * hinges.margin)
    return cost, slack


@njit(cache=True, nogil=True, error_model="numpy")
def _note_window(room: Sorted, first: int, last: int, low: int, high: int, bar: float) -> None:
    """Store the window of one j for the items i."""
    room.full[first] += 1
    room.full[low] -= 1
    if high > low:
        room.entered[low] += 1
        room.entered_sum[low] += bar - room.values[low]
        room.left[high] += 1
        if high < last:
            room.left_sum[high] += bar - room.values[high]


@njit(cache=True, nogil=True, error_model="numpy")
def _pull_back(hinges: PairHinges, room: Sorted, width: float, pulls: FloatArray) -> None:
    """Subtract the pairs' gradient at the items i from `pulls`, and scale `pulls`. O(m)."""
    slope, level = _slope_and_level(hinges.power, width)
    scale = hinges.power * hinges.weight
    n_full = n_inside = 0
    total = 0.0
    value = room.values[0]
    for position in range(pulls.shape[0]):
        total -= n_inside * (room.values[position] - value) + room.left_sum[position]
        value = room.values[position]
        n_inside -= room.left[position]
        if n_inside == 0:
            total = 0.0
        total += room.entered_sum[position]
        n_inside += room.entered[position]
        n_full += room.full[position]
        item = room.items[position]
        pulls[item] = scale * (pulls[item] - (n_full + level * n_inside + slope * total))


@njit(cache=True, nogil=True, error_model="numpy")
def pairs_inside(room: Sorted) -> int:
    """Return the number of pairs in the zone. O(m)."""
    inside = 0
    pairs = 0
    for position in range(room.items.shape[0]):
        inside += room.entered[position] - room.left[position]
        pairs += inside
    return pairs


@njit(cache=True, nogil=True, error_model="numpy")
def half_curvature(
    hinges: PairHinges, room: Sorted, features: FloatArray, products: FloatArray
) -> None:
    """Write Z with ``Σ (x_j − x_i)(x_j − x_i)ᵀ = XᵀZ + ZᵀX`` over the pairs in the zone.

    ``Z_j = ½ deg_j x_j − Σ_i x_i``: degrees and sums over windows that only move forward, so
    O(m d) for each pair of groups.
    """
    m, d = features.shape
    n_inside = 0
    for position in range(m):
        n_inside += room.entered[position] - room.left[position]
        item = room.items[position]
        for a in range(d):
            products[item, a] = 0.5 * n_inside * features[item, a]
    total = np.empty(d)
    for pair in range(hinges.groups.shape[0]):
        lower = hinges.groups[pair, 1]
        low = high = 0
        for j in range(hinges.starts[lower], hinges.starts[lower + 1]):
            if room.low[pair, j] >= high:
                total.fill(0.0)
                low = high = room.low[pair, j]
            while high < room.high[pair, j]:
                _add_row(features, room.items[high], 1.0, total)
                high += 1
            while low < room.low[pair, j]:
                _add_row(features, room.items[low], -1.0, total)
                low += 1
            if high > low:
                item = room.items[j]
                for a in range(d):
                    products[item, a] += 0.5 * (high - low) * features[item, a] - total[a]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_row(features: FloatArray, row: int, factor: float, total: FloatArray) -> None:
    for a in range(total.shape[0]):
        total[a] += factor * features[row, a]
