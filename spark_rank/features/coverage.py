"""Chooses a panel by greedy coverage: each next reviewer adds most on items with few opinions."""

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

    Candidate c has rated ``items[ends[c]:ends[c + 1]]``, each once. The value of a panel is
    ``Σ_i demand_i (1 + 1/2 + … + 1/c_i)`` with c_i members who rated item i: the first opinion on
    an item counts most. Every step takes the candidate of greatest gain, the first among equals.

    A candidate's gain only falls as the panel grows (the value is submodular), so an old gain is an
    upper bound: it is computed again only for the candidate at the top of a heap. Gains are whole
    numbers (`demand` in `_PARTS`), so that the order of addition does not matter.
    """
    shares = demand * _PARTS
    members = np.zeros(len(demand), dtype=np.int64)
    gains = _row_sums(shares[items], ends)
    heap = [(-gain, candidate) for candidate, gain in enumerate(gains.tolist())]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < size:
        _, candidate = heap[0]
        rated = items[ends[candidate] : ends[candidate + 1]]
        updated = (-int((shares[rated] // (members[rated] + 1)).sum()), candidate)
        # the heap has upper bounds: no other candidate can be better
        if updated <= min(heap[1:3], default=updated):
            heapq.heappop(heap)
            chosen.append(candidate)
            members[rated] += 1
        else:
            heapq.heapreplace(heap, updated)
    return chosen


# a unit of demand in parts, so that fractions of a small demand still count
_PARTS = 1 << 20


def _row_sums(values: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    totals = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(totals[ends[1:]] - totals[ends[:-1]])
