"""Local search for a small Kemeny score: moves single items to better places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.preference.majorities import FloatArray

IntArray = NDArray[np.int64]

# a move must gain more than this share of all opinions, so that rounding causes no endless loop
_LEAST_GAIN = 1e-12


def insertion_search(order: Sequence[int], majorities: FloatArray) -> list[int]:
    """Return a local optimum reached from `order`: moving any one item elsewhere gains nothing.

    A sweep tries all n² moves in O(n²), taking for each item in turn its best new place; sweeps
    go on until none finds a gain. The Kemeny score never rises.
    """
    places = np.array(order, dtype=np.int64)
    # only margins matter: the cost of putting v before u instead of u before v
    margins = np.ascontiguousarray(majorities - majorities.T)
    _descend(places, margins, _LEAST_GAIN * float(majorities.sum()))
    return [int(row) for row in places]


@njit(cache=True)
def _descend(order: IntArray, margins: FloatArray, least_gain: float) -> None:
    """Sweep over the items until none can move with a gain above `least_gain`."""
    n = len(order)
    unmoved = 0
    item = 0
    # n successive items without a move are a whole sweep without a gain
    while unmoved < n:
        place = 0
        while order[place] != item:
            place += 1
        target = _best_place(order, margins, place, least_gain)
        if target == place:
            unmoved += 1
        else:
            _move(order, place, target)
            unmoved = 0
        item = (item + 1) % n


@njit(cache=True)
def _best_place(order: IntArray, margins: FloatArray, place: int, least_gain: float) -> int:
    """Return the place where an item gains most; if several are equal, the nearest, front first."""
    item = order[place]
    best_gain = least_gain
    best = place
    gain = 0.0
    for target in range(place - 1, -1, -1):
        gain += margins[item, order[target]]
        if gain > best_gain:
            best_gain = gain
            best = target
    gain = 0.0
    for target in range(place + 1, len(order)):
        gain += margins[order[target], item]
        if gain > best_gain:
            best_gain = gain
            best = target
    return best


@njit(cache=True)
def _move(order: IntArray, place: int, target: int) -> None:
    """Take the item at `place` out and put it in again at `target`."""
    item = order[place]
    step = 1 if target > place else -1
    while place != target:
        order[place] = order[place + step]
        place += step
    order[target] = item
