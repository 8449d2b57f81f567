"""Lists that are the same for everybody, but for what a user has seen: most popular, best mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit

IntArray = NDArray[np.int64]


def first_unseen(
    order: IntArray, seen: IntArray, ends: IntArray, size: int, n_items: int
) -> IntArray:
    """Return the first `size` items of `order` that each user has not seen, −1 where none is left.

    ``seen[ends[u]:ends[u + 1]]`` are user u's; negative numbers are skipped. O(seen + size) each.
    """
    found = np.full((len(ends) - 1, size), -1, dtype=np.int64)
    _fill_unseen(order, seen, ends, np.full(n_items, -1, dtype=np.int64), found)
    return found


@njit(cache=True, nogil=True)
def _fill_unseen(order: Any, seen: Any, ends: Any, last_user: Any, found: Any) -> None:
    for user in range(found.shape[0]):
        for entry in range(ends[user], ends[user + 1]):
            if seen[entry] >= 0:
                last_user[seen[entry]] = user
        place = 0
        for entry in range(len(order)):
            if place == found.shape[1]:
                break
            if last_user[order[entry]] != user:
                found[user, place] = order[entry]
                place += 1
