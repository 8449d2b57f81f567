"""The papers' pair metrics, each in O(m log m) and exact.

References
----------
Cortes, Mohri, Rastogi: An Alternative Ranking Problem for Search Engines, eqs. 67 to 69.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def mean_squared_difference(h: ArrayLike, y: ArrayLike) -> float | None:
    """Return MSD, the mean of ((h_j − h_i) − (y_j − y_i))² over all m² ordered pairs (eq. 67).

    It is twice the population variance of the residuals: O(m). With fewer than two items there
    is no pair to compare: None.
    """
    residuals = _residuals(h, y)
    return None if len(residuals) < 2 else 2.0 * float(residuals.var())


def mean_1norm_difference(h: ArrayLike, y: ArrayLike) -> float | None:
    """Return M1D, the mean of |(h_j − h_i) − (y_j − y_i)| over all m² ordered pairs (eq. 68).

    On sorted residuals it is ``(2/m²) Σ_i (2i − m − 1) r_(i)``: O(m log m). With fewer than two
    items: None.
    """
    residuals = _residuals(h, y)
    m = len(residuals)
    if m < 2:
        return None
    weights = 2.0 * np.arange(1, m + 1) - m - 1.0
    # centring costs nothing (the weights sum to 0) and keeps digits when residuals are large
    ordered = np.sort(residuals - residuals.mean())
    return 2.0 * float(weights @ ordered) / m**2


def pairwise_misranking(h: ArrayLike, y: ArrayLike) -> float | None:
    """Return the share of pairs with y_i > y_j that have h_i ≤ h_j (eq. 69): O(m log m).

    A tie in h counts as misranked. Where all ratings tie there is no pair: None.
    """
    scores, targets = _pair_of_vectors(h, y)
    if len(targets) < 2:
        return None
    order = np.argsort(targets, kind="stable")
    levels = np.unique(scores, return_inverse=True)[1]
    misranked, pairs = _count_misranked(targets[order], levels[order].astype(np.int64))
    return None if pairs == 0 else misranked / pairs


def _residuals(h: ArrayLike, y: ArrayLike) -> FloatArray:
    scores, targets = _pair_of_vectors(h, y)
    return scores - targets


def _pair_of_vectors(h: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    scores, targets = np.asarray(h, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if scores.ndim != 1 or scores.shape != targets.shape:
        raise ValueError(
            f"scores and ratings must be vectors of one length, not {scores.shape} and "
            f"{targets.shape}"
        )
    if not (np.isfinite(scores).all() and np.isfinite(targets).all()):
        raise ValueError("scores and ratings must be finite")
    return scores, targets


@njit(cache=True)
def _count_misranked(y: FloatArray, levels: NDArray[np.int64]) -> tuple[int, int]:
    """Count pairs y_i > y_j, and those of them with level_i ≤ level_j; `y` ascends.

    A Fenwick tree holds how many items of lower rating have each score level.
    """
    m = len(y)
    size = levels.max() + 1
    tree = np.zeros(size + 1, dtype=np.int64)
    misranked = 0
    pairs = 0
    start = 0
    while start < m:
        stop = start
        while stop < m and y[stop] == y[start]:
            stop += 1
        pairs += (stop - start) * start
        for i in range(start, stop):
            below = 0
            node = levels[i]
            while node > 0:
                below += tree[node]
                node -= node & -node
            misranked += start - below
        for i in range(start, stop):
            node = levels[i] + 1
            while node <= size:
                tree[node] += 1
                node += node & -node
        start = stop
    return misranked, pairs
