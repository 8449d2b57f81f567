"""How good predictions are, in one number of which more is better: what `score` returns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def r_squared(predicted: FloatArray, y: FloatArray, weights: FloatArray | None) -> float:
    """Return 1 − Σ (ŷ − y)² / Σ (y − ȳ)²; of equal targets 1 if all are met, else 0."""
    w = np.ones_like(y) if weights is None else weights
    left = float(w @ (predicted - y) ** 2)
    around = float(w @ (y - np.average(y, weights=w)) ** 2)
    if around > 0.0:
        return 1.0 - left / around
    return 1.0 if left == 0.0 else 0.0


def ordered_share(scores: FloatArray, y: FloatArray, weights: FloatArray | None) -> float:
    """Return the share of the pairs y_i > y_j with h_i > h_j; NaN if all targets are equal.

    A pair has the product of its weights. A tie of scores is not ordered. O(m log m).
    """
    w = np.ones_like(y) if weights is None else weights
    levels = np.unique(y, return_inverse=True)[1]
    pairs = 0.5 * (w.sum() ** 2 - float(np.square(np.bincount(levels, weights=w)).sum()))
    if not pairs > 0.0:
        return float("nan")
    return _ordered(scores, levels, w) / pairs


def _ordered(scores: FloatArray, levels: NDArray[np.int64], weights: FloatArray) -> float:
    """Return the weight of the pairs l_i > l_j with h_i > h_j, by merging halves of the levels."""
    # by level, and within a level by score: what is in the right half has the higher level
    order = np.lexsort((scores, levels))
    parts = [(scores[order], levels[order], weights[order])]
    total = 0.0
    while parts:
        h, of, w = parts.pop()
        if of[0] == of[-1]:
            continue
        cut = int(np.searchsorted(of, of[len(of) // 2]))
        cut = cut if cut > 0 else int(np.searchsorted(of, of[0], side="right"))
        lower = np.argsort(h[:cut], kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(w[:cut][lower])])
        total += float(w[cut:] @ sums[np.searchsorted(h[:cut][lower], h[cut:], side="left")])
        parts += [(h[:cut], of[:cut], w[:cut]), (h[cut:], of[cut:], w[cut:])]
    return total
