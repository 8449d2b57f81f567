"""How much the members of an ensemble differ: sums over members, and measures from these sums.

Both sums are whole numbers, so sums of disjoint groups of members can be added in any order with
the same bits: see `members`.
"""

from __future__ import annotations

import numpy as np

from spark_rank.learners.base import FloatArray
from spark_rank.learners.perceptrons.online import check_examples, check_round
from spark_rank.learners.perceptrons.rounds import IntArray, Rule, rank_counts

_DIRECTION_BITS = 40  # an int64 has room for the unit vectors of eight million members


def direction_sums(coef: FloatArray) -> IntArray:
    """Return Σ_j w_j/‖w_j‖ in steps of 2^-40 and, last, the number of nonzero rows of `coef`."""
    norms = np.sqrt((coef**2).sum(axis=1))
    moved = norms > 0.0
    units = np.trunc(coef[moved] / norms[moved, None] * 2.0**_DIRECTION_BITS)
    return np.append(units.astype(np.int64).sum(axis=0), np.count_nonzero(moved))


def mean_angle(sums: IntArray, coef: FloatArray) -> float | None:
    """Return the angle, in degrees, whose cosine is the mean over members of cos(w_j, `coef`).

    None if `coef` or all members are 0, because 0 has no direction.
    """
    norm, moved = float(np.sqrt((coef**2).sum())), int(sums[-1])
    if norm == 0.0 or moved == 0:
        return None
    cosine = float((sums[:-1] * coef).sum()) * 2.0**-_DIRECTION_BITS / (norm * moved)
    return float(np.degrees(np.arccos(min(max(cosine, -1.0), 1.0))))


def predicted_counts(X: FloatArray, coef: FloatArray, thresholds: FloatArray) -> IntArray:
    """Return for every row of `X` how many members predict rank 1, 2, …, k: O(m N (d + k))."""
    features = check_examples(X, coef.shape[1])
    counts = np.zeros((len(features), thresholds.shape[1] + 1), dtype=np.int64)
    check_round(rank_counts(features, Rule(coef, thresholds), counts), features)
    return counts


def disagreement(counts: IntArray) -> float | None:
    """Return the share of pairs of members that predict different ranks, over all examples.

    None without examples or with a single member.
    """
    n_members = int(counts[0].sum()) if len(counts) else 0
    pairs = len(counts) * n_members * (n_members - 1)
    if pairs == 0:
        return None
    return 1.0 - int((counts * (counts - 1)).sum()) / pairs
