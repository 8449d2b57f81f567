"""The rule that turns numbers into ranks: a number half way between two ranks gets the higher one.

A rank begins at its cut, including the cut: ``ŷ = 1 + #{ r : b_r ≤ score }``. Learners, metrics and
stored models all rank by the functions of this module.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spark_rank.compiled import njit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_FEW = 16  # cuts that are compared with a value one by one


def cuts_between(levels: ArrayLike) -> FloatArray:
    """Return where each of k ascending levels but the first begins: half way from the one before.

    Two levels that are neighbouring floats still get different ranks.
    """
    scale = np.asarray(levels, dtype=np.float64)
    return np.maximum(scale[:-1] / 2.0 + scale[1:] / 2.0, np.nextafter(scale[:-1], np.inf))


def ranks_from_scores(scores: ArrayLike, cuts: FloatArray) -> IntArray:
    """Return 1 + the number of ascending cuts that each score reaches, in O(log k) each."""
    return np.searchsorted(cuts, scores, side="right").astype(np.int64) + 1


def nearest_rank(sums: IntArray, total: int | IntArray) -> IntArray:
    """Return the whole number nearest to sums/total, half up, in integer arithmetic."""
    return (2 * sums + total) // (2 * total)


def nearest_whole(means: FloatArray) -> IntArray:
    """Return the whole number nearest to each mean, half up."""
    return np.floor(means + 0.5).astype(np.int64)


# inlined, because a compiled call with arrays costs more than this function
@njit(nogil=True, inline="always")
def predicted_rank(score: float, thresholds: FloatArray) -> int:
    """Return min { r : score − b_r < 0 } with b_k = ∞, in O(k).

    Counted without a branch, because the thresholds are ordered.
    """
    rank = 1
    for r in range(thresholds.shape[0]):
        if score >= thresholds[r]:
            rank += 1
    return rank


@njit(cache=True)
def interval_of(values: FloatArray, cuts: FloatArray) -> IntArray:
    """Return for every value how many of the ascending cuts it reaches: its interval, from 0."""
    if len(cuts) > _FEW:
        return np.searchsorted(cuts, values, "right").astype(np.int64)
    reached = np.zeros(len(values), np.int64)
    for cut in cuts:
        # each cut for all values at once, because the interval of a value is unpredictable
        for i in range(len(values)):
            reached[i] += cut <= values[i]
    return reached
