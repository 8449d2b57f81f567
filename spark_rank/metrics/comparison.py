"""Compares two learners over the same users: mean difference, intervals and significance.

References
----------
Pratt: Remarks on Zeros and Ties in the Wilcoxon Signed Rank Procedures, JASA 54, 1959.
Holm: A Simple Sequentially Rejective Multiple Test Procedure, Scand. J. Statist. 6, 1979.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, ndtr

from spark_rank.metrics.intervals import Interval, bootstrap_interval, defined_values, t_interval
from spark_rank.metrics.vectors import FloatArray, IntArray

_MAX_EXACT = 50  # more users than this: the normal approximation of the signed-rank statistic


@dataclass(frozen=True)
class PairedComparison:
    """Learner a compared with b on the users that have both values; None where undefined.

    Attributes
    ----------
    users
        Users with both values.
    mean_difference
        The mean of a − b; None without users.
    sd
        The standard deviation (n − 1) of a − b; None with fewer than two users, as the intervals.
    t_interval, bootstrap_interval
        Of the mean difference.
    wilcoxon_p, sign_p
        Two-sided p-values of the signed-rank and the sign test; 1 if no user differs, None without
        users.
    wins, ties, losses
        Users for whom a is better than b, equal, and worse.
    """

    users: int
    mean_difference: float | None
    sd: float | None
    t_interval: Interval | None
    bootstrap_interval: Interval | None
    wilcoxon_p: float | None
    sign_p: float | None
    wins: int
    ties: int
    losses: int


def compare_paired(
    a: ArrayLike,
    b: ArrayLike,
    *,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = 1_000,
    lower_is_better: bool = True,
) -> PairedComparison:
    """Compare the values of two learners user by user, in O(n log n) and the bootstrap.

    Parameters
    ----------
    a, b
        The metric of each user under either learner, in the same order; a user with NaN in one of
        them is left out.
    level, seed, resamples
        Of the intervals, see `bootstrap_interval`.
    lower_is_better
        Whether the smaller value wins, as with losses; False for AUC, NDCG and the like.
    """
    first, second = np.array(a, dtype=np.float64), np.array(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(
            "both learners must have one value per user, in vectors of one length, not "
            f"{first.shape} and {second.shape}"
        )
    if np.isinf(first).any() or np.isinf(second).any():
        raise ValueError("values must be finite, or NaN where a user has none")
    differences = defined_values(first - second)
    n = len(differences)
    below, above = int((differences < 0).sum()), int((differences > 0).sum())
    wins, losses = (below, above) if lower_is_better else (above, below)
    return PairedComparison(
        users=n,
        mean_difference=float(differences.mean()) if n else None,
        sd=float(differences.std(ddof=1)) if n > 1 else None,
        t_interval=t_interval(differences, level),
        bootstrap_interval=bootstrap_interval(differences, level, resamples, seed),
        wilcoxon_p=signed_rank_p(differences) if n else None,
        sign_p=_sign_p(wins, losses) if n else None,
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
    )


def holm(p_values: ArrayLike) -> FloatArray:
    """Return Holm's adjusted p-values of several comparisons, in the same order: O(n log n).

    Rejecting the comparisons with at most α keeps the probability of any false rejection at most α,
    even if the comparisons depend on each other.
    """
    p = np.array(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0.0) & (p <= 1.0)).all():
        raise ValueError("p-values must be a vector of numbers between 0 and 1")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def _sign_p(wins: int, losses: int) -> float:
    """Return the exact two-sided binomial p-value; users with equal values do not count."""
    n = wins + losses
    return 1.0 if n == 0 else min(1.0, 2.0 * float(bdtr(min(wins, losses), n, 0.5)))


def signed_rank_p(differences: FloatArray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, with Pratt's rule for zeros.

    Zeros are ranked with the other values and then left out: with few items a user's metrics often
    tie, and dropping these users before ranking can reverse a result. Equal sizes share their mean
    rank. Up to 50 users the distribution over all signs is exact, also with ties; with more users
    it is the normal approximation with the exact variance, without a continuity correction.
    """
    positive, sizes, doubled = _ranked_sizes(differences)
    if len(sizes) == 0:
        return 1.0
    above = int(doubled @ positive)
    smaller = min(above, int(doubled @ sizes) - above)
    if len(differences) <= _MAX_EXACT:
        return min(1.0, 2.0 * _share_of_signs(np.repeat(doubled, sizes), smaller))
    spread = math.sqrt(float(sizes @ doubled.astype(np.float64) ** 2) / 4.0)
    middle = float(doubled @ sizes) / 2.0
    return min(1.0, 2.0 * float(ndtr((smaller - middle) / spread)))


def _ranked_sizes(differences: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return, for every nonzero size of a difference, three whole numbers.

    They are the number of positive differences, the number of all differences of this size, and
    twice their mean rank among all sizes.
    """
    # the bits of sizes have the order of the sizes, so one sort also sorts the signs: a size needs
    # no sign bit, so it is shifted and the sign of the difference takes the lowest bit
    keys = (np.abs(differences).view(np.uint64) << np.uint64(1)) | (differences > 0.0)
    keys.sort()
    bits = keys >> np.uint64(1)
    starts = np.flatnonzero(np.append(True, bits[1:] != bits[:-1])[: len(bits)])
    ends = np.append(starts[1:], len(bits))[: len(starts)]
    counted = bits[starts] > 0
    positive = np.add.reduceat((keys & np.uint64(1)).astype(np.int64), starts[counted])
    return positive, (ends - starts)[counted], (starts + 1 + ends)[counted]


def _share_of_signs(ranks: IntArray, limit: int) -> float:
    """Return the share of all choices of signs whose positive ranks sum to at most `limit`."""
    share = np.zeros(limit + 1)
    share[0] = 1.0
    for rank in ranks:
        moved = np.zeros_like(share)
        moved[rank:] = share[: max(limit + 1 - rank, 0)]
        share = 0.5 * (share + moved)
    return float(share.sum())
