"""Compiled sort of scores with their items, in O(m) for scores that are spread out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray

IntArray = NDArray[np.int64]

_MOVES_PER_ITEM = 8
_FEW = 24  # insertion alone is faster


@njit(cache=True, nogil=True, error_model="numpy")
def sort_with_items(items: IntArray, values: FloatArray) -> None:
    """Sort `values` in place, `items` along with them.

    One bucket per value between the lowest and the highest, then insertion: O(m) unless most
    values crowd into few buckets, else O(m^1.5) at worst. The same input gives the same order.
    """
    size = values.shape[0]
    if size <= _FEW and _insert_in_order(items, values):
        return
    lowest = highest = values[0]
    for i in range(1, size):
        lowest = min(lowest, values[i])
        highest = max(highest, values[i])
    scale = (size - 1) / (highest - lowest)
    bucket = np.empty(size, np.int64)
    start = np.zeros(size + 1, np.int64)
    for i in range(size):
        share = (values[i] - lowest) * scale
        if not 0.0 <= share < size:  # all are equal, or some are not finite
            _shell_sort(items, values)
            return
        bucket[i] = int(share)
        start[bucket[i] + 1] += 1
    for k in range(size):
        start[k + 1] += start[k]
    old_items, old_values = items.copy(), values.copy()
    for i in range(size):
        place = start[bucket[i]]
        start[bucket[i]] = place + 1
        items[place] = old_items[i]
        values[place] = old_values[i]
    if not _insert_in_order(items, values):
        _shell_sort(items, values)


@njit(cache=True, nogil=True, error_model="numpy")
def _insert_in_order(items: IntArray, values: FloatArray) -> bool:
    """Sort by insertion; stop, and return False, if that takes too many moves."""
    moves_left = _MOVES_PER_ITEM * values.shape[0]
    for i in range(1, values.shape[0]):
        value, item = values[i], items[i]
        place = i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            items[place] = items[place - 1]
            place -= 1
        values[place] = value
        items[place] = item
        moves_left -= i - place
        if moves_left < 0:
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _shell_sort(items: IntArray, values: FloatArray) -> None:
    """Sort by insertion at decreasing distances; at worst O(m^1.5)."""
    size = values.shape[0]
    gap = 1
    while 3 * gap + 1 < size:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            value, item = values[i], items[i]
            place = i
            while place >= gap and values[place - gap] > value:
                values[place] = values[place - gap]
                items[place] = items[place - gap]
                place -= gap
            values[place] = value
            items[place] = item
        gap //= 3
