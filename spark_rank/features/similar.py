"""Items that look alike to learners: the cosine of their features around the average item."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SCORES_AT_ONCE = 2**22


def similar_items(
    matrix: NDArray[np.float32], asked: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return, for every item asked for, the numbers and cosines of the most similar others.

    The best come first, equal ones in the order of their numbers. An item that is the average one
    is like nothing: its cosines are 0. O(asked · items · d).
    """
    centred = matrix - matrix.mean(axis=0, dtype=np.float64)
    lengths = np.sqrt((centred**2).sum(axis=1))
    units = centred / np.where(lengths > 0.0, lengths, 1.0)[:, None]
    count = max(min(count, len(matrix) - 1), 0)
    numbers = np.empty((len(asked), count), dtype=np.int64)
    cosines = np.empty((len(asked), count))
    step = max(1, _SCORES_AT_ONCE // max(len(matrix), 1))
    for start in range(0, len(asked), step):
        own = asked[start : start + step]
        found = units[own] @ units.T
        found[np.arange(len(own)), own] = -np.inf
        order = np.argsort(-found, axis=1, kind="stable")[:, :count]
        numbers[start : start + step] = order
        cosines[start : start + step] = np.take_along_axis(found, order, axis=1)
    return numbers, cosines
