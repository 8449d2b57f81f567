"""The metrics on the training parts of a whole batch of users, in one compiled call."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spark_rank.compiled import njit
from spark_rank.metrics.batch import checked_batch
from spark_rank.metrics.discordance import MISRANKING, discordance
from spark_rank.metrics.margin import sorted_margin_loss
from spark_rank.metrics.order import sort_descending
from spark_rank.metrics.residuals import insensitive_costs, squared_difference
from spark_rank.metrics.vectors import BoolArray, FloatArray, IntArray

TRAINING_METRICS: tuple[str, ...] = ("msd", "m1d", "misranking", "margin_loss")
_MSD, _M1D, _MISRANKING, _MARGIN_LOSS = range(len(TRAINING_METRICS))


def batch_training_metrics(
    scores: ArrayLike,
    ratings: ArrayLike,
    ends: ArrayLike,
    *,
    on_rating_scale: ArrayLike,
    with_margin: ArrayLike,
    rho: float,
) -> dict[str, NDArray[np.float64]]:
    """Return `TRAINING_METRICS` by name, one entry per user; NaN where undefined.

    The parameters are those of `batch_metrics` and `margin_loss`; the kernels and results are those
    of the metrics for one user. Only users `with_margin` get the margin loss, which takes as long
    as all other metrics. O(m log m) for a user with m items.
    """
    if not (np.isfinite(rho) and rho > 0.0):
        raise ValueError(f"rho must be a positive number, not {rho}")
    values, targets, limits = checked_batch(scores, ratings, ends)
    n_users = len(limits) - 1
    flags = np.array([on_rating_scale, with_margin], dtype=np.bool_)
    if flags.shape != (2, n_users):
        raise ValueError(
            f"on_rating_scale and with_margin must have one entry per user, {n_users} of them"
        )
    table = np.full((len(TRAINING_METRICS), n_users), np.nan)
    _measure_users(values, targets, limits, flags[0], flags[1], float(rho), table)
    return dict(zip(TRAINING_METRICS, table, strict=True))


@njit(cache=True)
def _measure_users(
    scores: FloatArray,
    ratings: FloatArray,
    ends: IntArray,
    on_rating_scale: BoolArray,
    with_margin: BoolArray,
    rho: float,
    table: FloatArray,
) -> None:
    """Fill the metrics × users table, which is NaN at first."""
    for user in range(len(ends) - 1):
        h = scores[ends[user] : ends[user + 1]]
        y = ratings[ends[user] : ends[user + 1]]
        ordered, order = sort_descending(h)
        by_score = y[order]
        costs, by_rating = discordance(ordered, by_score)
        misranking = costs[MISRANKING]
        table[_MISRANKING, user] = misranking
        if with_margin[user]:
            table[_MARGIN_LOSS, user] = sorted_margin_loss(
                ordered, by_score, by_rating, misranking, rho
            )
        if on_rating_scale[user]:
            table[_MSD, user] = squared_difference(h, y)
            table[_M1D, user] = insensitive_costs(h, y, 0.0)[0]
