"""A panel by greedy coverage: each next reviewer adds what the panel knows least about."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray


def cover(
    items: NDArray[np.int64],
    ends: NDArray[np.int64],
    demand: NDArray[np.int64],
    size: int,
) -> list[int]:
    """Return `size` candidates (all, if there are fewer) in the order in which they are chosen.

    Candidate c has rated ``items[ends[c]:ends[c + 1]]``, each once. The worth of a panel is
    ``Σ_i demand_i (1 + 1/2 + … + 1/c_i)`` with c_i members who rated item i: the first opinion on
    an item counts most. Every step takes the candidate who adds most; ties go to the first.

    What a candidate adds only falls as the panel grows (the worth is submodular), so an old value
    is an upper bound: a candidate is looked at again only when at the top of a heap. Values are
    whole numbers (`demand`, cut into `_PARTS`), equal whatever the order of addition.
    """
    shares = demand * _PARTS
    members = np.zeros(len(demand), dtype=np.int64)
    gains = _row_sums(shares[items], ends)
    heap = [(-gain, candidate) for candidate, gain in enumerate(gains.tolist())]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < size:
        _, candidate = heap[0]
        own = items[ends[candidate] : ends[candidate + 1]]
        now = (-int((shares[own] // (members[own] + 1)).sum()), candidate)
        # no other can be better than its place in the heap says
        if now <= min(heap[1:3], default=now):
            heapq.heappop(heap)
            chosen.append(candidate)
            members[own] += 1
        else:
            heapq.heapreplace(heap, now)
    return chosen


# so that thirds and sevenths of a small demand still count
_PARTS = 1 << 20


def _row_sums(values: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    totals = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(totals[ends[1:]] - totals[ends[:-1]])
