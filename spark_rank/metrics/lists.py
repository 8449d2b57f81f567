"""Metrics of whole lists: their hits among all items, and what the lists are like.

A list has at most k items of the whole catalogue. An item is relevant to a user if a held-out
rating says so; all others count as not relevant, though the user may just not know them. Without a
relevant item the metrics of hits are undefined: NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_rank.metrics.vectors import BoolArray, FloatArray, IntArray

HIT_METRICS = ("hit_rate", "precision", "recall", "ndcg", "reciprocal_rank", "average_precision")


def hit_metrics(hits: BoolArray, relevant: IntArray) -> dict[str, FloatArray]:
    """Return `HIT_METRICS` of every user from a row of hits: O(users · k).

    ``hits[u, p]`` tells whether the item at place p of user u's list is relevant, and
    ``relevant[u]`` how many items are. A hit at place p, from 1, has the gain 1/log₂(1 + p) in
    NDCG, whose best list begins with min(k, relevant) hits. Average precision is the mean of the
    precisions at the hits, over min(k, relevant); precision is over k.
    """
    size = hits.shape[1]
    places = np.arange(1, size + 1)
    gains = 1.0 / np.log2(1.0 + places)
    best = np.minimum(relevant, size)
    found = hits.sum(axis=1)
    first = np.where(found > 0, 1.0 / (1.0 + hits.argmax(axis=1)), 0.0)
    precisions = hits * np.cumsum(hits, axis=1) / places
    with np.errstate(invalid="ignore", divide="ignore"):
        values = {
            "hit_rate": (found > 0).astype(np.float64),
            "precision": found / size,
            "recall": found / relevant,
            "ndcg": (hits * gains).sum(axis=1) / np.concatenate([[0.0], np.cumsum(gains)])[best],
            "reciprocal_rank": first,
            "average_precision": precisions.sum(axis=1) / best,
        }
    return {name: np.where(relevant > 0, value, np.nan) for name, value in values.items()}


def coverage(exposures: IntArray) -> float:
    """Return the share of the items that are in some list."""
    return float(np.count_nonzero(exposures) / len(exposures)) if len(exposures) else np.nan


def gini(exposures: IntArray) -> float:
    """Return Gini's coefficient of the exposures: 0 if all items are in as many lists.

    With one item in all lists it is (n − 1)/n. NaN if no item is in a list.
    """
    ascending = np.sort(exposures)
    n, total = len(ascending), int(ascending.sum())
    if total == 0:
        return float("nan")
    # integers: the sum is exact in any order
    weighted = int(((2 * np.arange(1, n + 1, dtype=np.int64) - n - 1) * ascending).sum())
    return weighted / (n * total)


def intra_list_diversity(units: NDArray[np.floating], listed: BoolArray) -> FloatArray:
    """Return 1 − the mean cosine over pairs of a list's items, list by list.

    ``units[u, p]`` is the direction of the item at place p, of length 1, or 0 for an item without
    one; ``listed`` tells which places are filled. NaN with fewer than two items. O(users · k · d):
    the sum over pairs is (‖Σ units‖² − Σ ‖units‖²)/2.
    """
    shown = np.where(listed[:, :, None], units, 0.0).astype(np.float64)
    sums = shown.sum(axis=1)
    squares = np.einsum("ukd,ukd->u", shown, shown)
    pairs = np.einsum("ud,ud->u", sums, sums) - squares
    counts = listed.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts > 1, 1.0 - pairs / (counts * (counts - 1.0)), np.nan)


def genre_divergence(wanted: FloatArray, shown: FloatArray, share: float = 0.01) -> FloatArray:
    """Return the divergence KL(p ‖ (1 − a) q + a p) of every row: what p has and q lacks.

    Rows of `wanted` (p) are the genres of what a user liked, rows of `shown` (q) those of the list;
    each is scaled to sum 1, and a is `share`, which keeps it finite (Steck, RecSys 2018). NaN where
    a row sums to 0.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        p = wanted / wanted.sum(axis=1, keepdims=True)
        q = shown / shown.sum(axis=1, keepdims=True)
        terms = np.where(p > 0.0, p * np.log(p / ((1.0 - share) * q + share * p)), 0.0)
    defined = (wanted.sum(axis=1) > 0.0) & (shown.sum(axis=1) > 0.0)
    return np.where(defined, terms.sum(axis=1), np.nan)
