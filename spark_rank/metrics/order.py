"""The order of a user's items by score: the sort, and the tie rule, in one place.

Score descending; equal scores by item id ascending if ids are given, otherwise in input order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.compiled import njit
from spark_rank.metrics.vectors import FloatArray, IntArray

_RUN = 8  # runs this short are sorted by insertion
_CELLS = 2  # per value
_MOVES = 4  # per value, up to which insertion is faster than merging


def ranking(scores: FloatArray, items: ArrayLike | None = None) -> IntArray:
    """Return the positions of the items, best first, in O(m log m).

    Parameters
    ----------
    scores
        One finite score per item.
    items
        The items' ids (numbers or strings), which decide ties; without them the position does.
    """
    if items is None:
        return sort_descending(scores)[1]
    ids = np.asarray(items)
    if ids.shape != scores.shape:
        raise ValueError(f"there must be one item id per score, not {ids.shape} for {scores.shape}")
    by_id = np.argsort(ids, kind="stable").astype(np.int64)
    return by_id[sort_descending(scores[by_id])[1]]


@njit(cache=True)
def sort_descending(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the values from high to low and their former positions; equal values keep their order.

    O(m) if the values are spread out, at worst O(m log m). They are distributed to cells between
    the highest and the lowest value, then sorted by insertion, or by merging if that would take too
    many moves. Values move together with their positions, so that comparisons read memory in
    sequence.
    """
    keys, order = _dealt(values)
    if not _insert(keys, order):
        keys, order = _merge_sort(keys, order)
    return keys, order


@njit(cache=True)
def _dealt(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return values and positions cell by cell, in their former order inside a cell.

    A smaller value never has a smaller cell number, even with rounding.
    """
    m = len(values)
    highest = lowest = values[0] if m > 0 else 0.0
    for i in range(m):
        highest = max(highest, values[i])
        lowest = min(lowest, values[i])
    cells = _CELLS * m
    scale = (cells - 1) / (highest - lowest) if highest > lowest else np.nan
    cell = np.empty(m, np.int32)
    place = np.zeros(cells + 1, np.int32)
    for i in range(m):
        share = (highest - values[i]) * scale
        if not 0.0 <= share < cells:  # all are equal, or too far apart or too near for a quotient
            return values.copy(), np.arange(m)
        cell[i] = np.int32(share)
        place[cell[i] + 1] += 1
    for i in range(cells):
        place[i + 1] += place[i]
    keys, order = np.empty(m), np.empty(m, np.int64)
    for i in range(m):
        own = place[cell[i]]
        place[cell[i]] += 1
        keys[own] = values[i]
        order[own] = i
    return keys, order


@njit(cache=True)
def _insert(keys: FloatArray, order: IntArray) -> bool:
    """Sort by insertion; stop, and return False, if that takes too many moves."""
    moves = _MOVES * len(keys)
    for i in range(1, len(keys)):
        key = keys[i]
        if keys[i - 1] < key:
            position = order[i]
            j = i
            while j > 0 and keys[j - 1] < key:
                keys[j] = keys[j - 1]
                order[j] = order[j - 1]
                j -= 1
            keys[j] = key
            order[j] = position
            moves -= i - j
            if moves < 0:
                return False
    return True


@njit(cache=True)
def _merge_sort(keys: FloatArray, order: IntArray) -> tuple[FloatArray, IntArray]:
    """Sort keys, and positions with them, which both are written over; O(m log m), stable."""
    m = len(keys)
    for start in range(0, m, _RUN):
        _sort_run(keys, order, start, min(start + _RUN, m))
    other_keys = np.empty(m)
    other_order = np.empty(m, np.int64)
    width = _RUN
    while width < m:
        for start in range(0, m, 2 * width):
            middle = min(start + width, m)
            stop = min(middle + width, m)
            _merge(keys, order, start, middle, stop, other_keys, other_order)
        keys, other_keys = other_keys, keys
        order, other_order = other_order, order
        width *= 2
    return keys, order


@njit(cache=True)
def _sort_run(keys: FloatArray, order: IntArray, start: int, stop: int) -> None:
    for i in range(start + 1, stop):
        key = keys[i]
        position = order[i]
        j = i
        while j > start and keys[j - 1] < key:
            keys[j] = keys[j - 1]
            order[j] = order[j - 1]
            j -= 1
        keys[j] = key
        order[j] = position


@njit(cache=True)
def _merge(
    keys: FloatArray,
    order: IntArray,
    start: int,
    middle: int,
    stop: int,
    merged_keys: FloatArray,
    merged_order: IntArray,
) -> None:
    """Merge two runs from both ends at once, as two independent chains of steps.

    Neither end can be exhausted before the length of the shorter run; the rest lies between them.
    """
    left, right, place = start, middle, start
    last_left, last_right, last = middle - 1, stop - 1, stop - 1
    for _ in range(min(middle - start, stop - middle)):
        # select values instead of branching, because the next side is unpredictable
        from_right = keys[right] > keys[left]
        merged_keys[place] = keys[right] if from_right else keys[left]
        merged_order[place] = order[right] if from_right else order[left]
        right += from_right
        left += 1 - from_right
        place += 1
        from_left = keys[last_right] > keys[last_left]
        merged_keys[last] = keys[last_left] if from_left else keys[last_right]
        merged_order[last] = order[last_left] if from_left else order[last_right]
        last_left -= from_left
        last_right -= 1 - from_left
        last -= 1
    while left <= last_left and right <= last_right:
        from_right = keys[right] > keys[left]
        merged_keys[place] = keys[right] if from_right else keys[left]
        merged_order[place] = order[right] if from_right else order[left]
        right += from_right
        left += 1 - from_right
        place += 1
    # the rest of one side, element by element, because runs are too short for array operations
    for i in range(left, last_left + 1):
        merged_keys[place] = keys[i]
        merged_order[place] = order[i]
        place += 1
    for i in range(right, last_right + 1):
        merged_keys[place] = keys[i]
        merged_order[place] = order[i]
        place += 1
