"""A Fenwick tree: counts the inserted items of lower levels, in O(log k) for k levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit

IntArray = NDArray[np.int64]


@njit(cache=True, nogil=True)
def insert(tree: IntArray, level: int) -> None:
    """Insert an item of a level from 0; a new tree has k + 1 zeros for k levels."""
    node = level + 1
    while node < tree.shape[0]:
        tree[node] += 1
        node += node & -node


@njit(cache=True, nogil=True)
def count_below(tree: IntArray, level: int) -> int:
    """Return how many inserted items have a level below `level`."""
    count = 0
    node = level
    while node > 0:
        count += tree[node]
        node -= node & -node
    return count
