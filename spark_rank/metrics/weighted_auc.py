"""The area under the ROC curve over all pairs, each with the magnitude of its preference."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.metrics.vectors import FloatArray, pair_of_vectors


def weighted_auc(
    h: ArrayLike, y: ArrayLike, *, ties: Literal["half", "strict"] = "half"
) -> float | None:
    """Return ``Σ (y_i − y_j) [h_i > h_j] / Σ (y_i − y_j)`` over the pairs with y_i > y_j.

    A pair counts as much as its ratings differ (Cortes, Mohri, Rastogi, conclusion). With two
    levels this is `auc`. A tie in h counts half (``half``) or not at all (``strict``, the formula).
    O(m log m log k) for k levels. None where all ratings tie.
    """
    if ties not in ("half", "strict"):
        raise ValueError(f"ties must be 'half' or 'strict', not {ties!r}")
    scores, ratings = pair_of_vectors(h, y)
    order = np.argsort(ratings, kind="stable")
    scores, ratings = scores[order], ratings[order]
    if len(ratings) == 0 or ratings[0] == ratings[-1]:
        return None
    # differences as shares of the range, so that no sum overflows
    ratings = ratings / 2.0 - ratings[0] / 2.0
    ratings = ratings / ratings[-1]
    places = np.arange(1 - len(ratings), len(ratings), 2)
    possible = float(places @ ratings)  # Σ (y_i − y_j) of sorted ratings
    return min(_ordered(scores, ratings, ties == "half") / possible, 1.0)


def _ordered(scores: FloatArray, ratings: FloatArray, half: bool) -> float:
    """Return the sum over ordered pairs, by halves of the ascending ratings."""
    total, parts = 0.0, [(scores, ratings)]
    while parts:
        h, y = parts.pop()
        if y[0] == y[-1]:
            continue
        cut = int(np.searchsorted(y, y[len(y) // 2]))
        cut = cut if cut > 0 else int(np.searchsorted(y, y[0], side="right"))
        lower = np.argsort(h[:cut], kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(y[:cut][lower])])
        sides: tuple[Literal["left", "right"], ...] = ("left", "right") if half else ("left",)
        for side in sides:
            below = np.searchsorted(h[:cut][lower], h[cut:], side=side)
            total += float((y[cut:] * below - sums[below]).sum()) / len(sides)
        parts += [(h[:cut], y[:cut]), (h[cut:], y[cut:])]
    return total
