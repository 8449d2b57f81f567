"""The metrics of a whole batch of users in one compiled call, as the workers of a cluster run it.

The kernels are those of the metrics for one user, so both give the same bits, however users are cut
into batches. Undefined metrics are NaN. Equal scores keep the order of a user's items in the input:
with items in the order of their ids this is the tie rule of `spark_rank.metrics.order`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spark_rank.compiled import njit
from spark_rank.metrics.discordance import HMP1, HMP2, HR1, MISRANKING, discordance
from spark_rank.metrics.errors import UNLIMITED, Limits, checked_limits, rating_errors
from spark_rank.metrics.order import sort_descending
from spark_rank.metrics.ranks import rank_errors, rating_levels
from spark_rank.metrics.residuals import insensitive_costs, squared_difference
from spark_rank.metrics.roc import area_under_curve, curve_counts, interpolate_curve
from spark_rank.metrics.top import discounted_gain_ratio, top_rates
from spark_rank.metrics.vectors import BoolArray, FloatArray, IntArray
from spark_rank.rank_rule import cuts_between, interval_of

BATCH_METRICS: tuple[str, ...] = (
    "msd",
    "m1d",
    "rmse",
    "mae",
    "misranking",
    "hr1",
    "hmp1",
    "hmp2",
    "svr1",
    "svr2",
    "rank_loss",
    "exact_rank",
    "auc",
    "ndcg",
    "precision",
    "recall",
    "average_precision",
)
(
    _MSD,
    _M1D,
    _RMSE,
    _MAE,
    _MISRANKING,
    _HR1,
    _HMP1,
    _HMP2,
    _SVR1,
    _SVR2,
    _RANK_LOSS,
    _EXACT_RANK,
    _AUC,
    _NDCG,
    _PRECISION,
    _RECALL,
    _AVERAGE_PRECISION,
) = range(len(BATCH_METRICS))


def batch_metrics(
    scores: ArrayLike,
    ratings: ArrayLike,
    ends: ArrayLike,
    *,
    on_rating_scale: ArrayLike,
    top: int,
    relevant_from: float,
    epsilon: float,
    levels: ArrayLike | None,
    cuts: ArrayLike | None = None,
    limits: Limits = UNLIMITED,
) -> dict[str, NDArray[np.float64]]:
    """Return every metric of `BATCH_METRICS` by name, one entry per user; NaN where undefined.

    O(m log m) for a user with m items, without Python in between. The paper's c_MP (eq. 5) is
    not among them: averaged as in its eq. 2 it is M1D for n = 1 and MSD for n = 2.

    Parameters
    ----------
    scores, ratings
        The items of all users, one user after the other; finite.
    ends
        User u has the items from ``ends[u]`` to ``ends[u + 1]``.
    on_rating_scale
        For every user whether the scores are predictions of ratings. If not, all metrics that
        compare scores with ratings are NaN: msd, m1d, rmse, mae, hmp1, hmp2, svr1, svr2,
        rank_loss and exact_rank.
    top
        The number of items for the metrics of the top.
    relevant_from
        The lowest rating of a relevant item, a positive one for the AUC.
    epsilon
        The ε of c_SVR.
    levels
        The ascending levels of the rating scale; None makes rank_loss and exact_rank NaN. The
        rank of a score or rating is its nearest level; half way it is the higher one.
    cuts
        For a scale that was cut: where each level but the first begins. Then these decide the
        ranks.
    limits
        The least and the greatest rating, to which rmse and mae clip the scores.
    """
    return batch_metrics_and_roc(
        scores, ratings, ends, on_rating_scale=on_rating_scale, top=top,
        relevant_from=relevant_from, epsilon=epsilon, levels=levels, cuts=cuts, limits=limits,
        grid=(),
    )[0]  # fmt: skip


def batch_metrics_and_roc(
    scores: ArrayLike,
    ratings: ArrayLike,
    ends: ArrayLike,
    *,
    on_rating_scale: ArrayLike,
    top: int,
    relevant_from: float,
    epsilon: float,
    levels: ArrayLike | None,
    cuts: ArrayLike | None = None,
    limits: Limits = UNLIMITED,
    grid: ArrayLike,
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float32]]:
    """Return what `batch_metrics` and `batch_roc` return, from one sort of the scores."""
    values, targets, places = checked_batch(scores, ratings, ends)
    scales = np.array(on_rating_scale, dtype=np.bool_)
    if scales.shape != (len(places) - 1,):
        raise ValueError(
            f"on_rating_scale must have one entry per user, {len(places) - 1}, not {scales.shape}"
        )
    if top < 1:
        raise ValueError(f"top must be at least 1, not {top}")
    if not (np.isfinite(epsilon) and epsilon >= 0.0):
        raise ValueError(f"epsilon must be a number of at least 0, not {epsilon}")
    if np.isnan(relevant_from):
        raise ValueError("relevant_from must be a number")
    low, high = checked_limits(limits)
    rates = _checked_grid(grid)
    starts = _rank_cuts(levels, cuts)
    table = np.full((len(BATCH_METRICS), len(scales)), np.nan)
    curves = np.empty((len(scales), len(rates)), np.float32)
    _measure_users(
        values,
        targets,
        places,
        scales,
        int(top),
        float(relevant_from),
        float(epsilon),
        low,
        high,
        starts is not None,
        np.empty(0) if starts is None else starts,
        rates,
        table,
        curves,
    )
    return dict(zip(BATCH_METRICS, table, strict=True)), curves


def _rank_cuts(levels: ArrayLike | None, cuts: ArrayLike | None) -> FloatArray | None:
    """Return where ranks 2..k begin; None without a rating scale."""
    if cuts is not None:
        return rating_levels(cuts)
    return None if levels is None else cuts_between(rating_levels(levels))


def batch_roc(
    scores: ArrayLike, ratings: ArrayLike, ends: ArrayLike, *, relevant_from: float, grid: ArrayLike
) -> NDArray[np.float32]:
    """Return users × grid: every user's true-positive rate at the false-positive rates of `grid`.

    Linear between the points of the ROC curve, as in vertical averaging (Fawcett 2006); where the
    curve rises straight up, its highest point. O(m log m) for a user with m items. A row is NaN
    where a user has no relevant item (rating ≥ `relevant_from`) or no other.
    """
    values, targets, limits = checked_batch(scores, ratings, ends)
    rates = _checked_grid(grid)
    if np.isnan(relevant_from):
        raise ValueError("relevant_from must be a number")
    curves = np.empty((len(limits) - 1, len(rates)), np.float32)
    _trace_users(values, targets, limits, float(relevant_from), rates, curves)
    return curves


def _checked_grid(grid: ArrayLike) -> FloatArray:
    """Return a copy of false-positive rates for a kernel, or raise ValueError."""
    rates = np.array(grid, dtype=np.float64)
    if rates.ndim != 1 or not ((rates >= 0.0) & (rates <= 1.0)).all():
        raise ValueError("grid must be a vector of false-positive rates between 0 and 1")
    if not (np.diff(rates) >= 0.0).all():
        raise ValueError("grid must ascend")
    return rates


def checked_batch(
    scores: ArrayLike, ratings: ArrayLike, ends: ArrayLike
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return copies of a batch for a kernel, or raise ValueError."""
    # copies, because views of Arrow memory are read-only, for which kernels would compile again
    values, targets = np.array(scores, dtype=np.float64), np.array(ratings, dtype=np.float64)
    limits = np.array(ends, dtype=np.int64)
    if values.ndim != 1 or values.shape != targets.shape:
        raise ValueError(
            f"scores and ratings must be vectors of one length, not {values.shape} and "
            f"{targets.shape}"
        )
    if limits.ndim != 1 or len(limits) == 0 or (np.diff(limits) < 0).any():
        raise ValueError("ends must be a vector of one more than the users, and ascend")
    if limits[0] < 0 or limits[-1] > len(values):
        raise ValueError(f"ends must lie between 0 and {len(values)}, the number of scores")
    finite = np.isfinite(values) & np.isfinite(targets)
    if not finite[limits[0] : limits[-1]].all():
        place = limits[0] + np.argmin(finite[limits[0] : limits[-1]])
        user = np.searchsorted(limits, place, side="right") - 1
        raise ValueError(f"scores and ratings must be finite; user {user} of the batch has others")
    return values, targets, limits


@njit(cache=True)
def _measure_users(
    scores: FloatArray,
    ratings: FloatArray,
    ends: IntArray,
    on_rating_scale: BoolArray,
    top: int,
    relevant_from: float,
    epsilon: float,
    low: float,
    high: float,
    ranked: bool,
    cuts: FloatArray,
    grid: FloatArray,
    table: FloatArray,
    curves: NDArray[np.float32],
) -> None:
    """Fill the metrics × users table, which is NaN at first, and the users × grid curves."""
    for user in range(len(ends) - 1):
        h = scores[ends[user] : ends[user + 1]]
        y = ratings[ends[user] : ends[user + 1]]
        costs = _measure_order(h, y, top, relevant_from, grid, table[:, user], curves[user])
        if on_rating_scale[user]:
            table[_HMP1, user] = costs[HMP1]
            table[_HMP2, user] = costs[HMP2]
            _measure_distances(h, y, epsilon, low, high, ranked, cuts, table[:, user])


@njit(cache=True)
def _measure_order(
    h: FloatArray,
    y: FloatArray,
    top: int,
    relevant_from: float,
    grid: FloatArray,
    column: FloatArray,
    curve: NDArray[np.float32],
) -> FloatArray:
    """Write the metrics of the order of the scores: one sort, one merge by rating, and O(m).

    Returns all costs of misordered pairs.
    """
    ordered, order = sort_descending(h)
    by_score = y[order]
    costs, by_rating = discordance(ordered, by_score)
    column[_MISRANKING] = costs[MISRANKING]
    column[_HR1] = costs[HR1]
    relevant = by_score >= relevant_from
    false, true, _ = curve_counts(ordered, relevant)
    column[_AUC] = area_under_curve(false, true, 0.5)
    column[_NDCG] = discounted_gain_ratio(by_score, by_rating, top)
    rates = top_rates(relevant, top)
    column[_PRECISION] = rates[0]
    column[_RECALL] = rates[1]
    column[_AVERAGE_PRECISION] = rates[2]
    if len(grid) > 0:
        interpolate_curve(false, true, grid, curve)
    return costs


@njit(cache=True)
def _measure_distances(
    h: FloatArray,
    y: FloatArray,
    epsilon: float,
    low: float,
    high: float,
    ranked: bool,
    cuts: FloatArray,
    column: FloatArray,
) -> None:
    """Write the metrics that compare scores with ratings: one sort of residuals, and O(m log k)."""
    column[_MSD] = squared_difference(h, y)
    costs = insensitive_costs(h, y, epsilon)
    column[_M1D] = costs[0]
    column[_SVR1] = costs[1]
    column[_SVR2] = costs[2]
    errors = rating_errors(h, y, low, high)
    column[_RMSE] = errors[0]
    column[_MAE] = errors[1]
    if ranked:
        of_ranks = rank_errors(interval_of(h, cuts), interval_of(y, cuts))
        column[_RANK_LOSS] = of_ranks[0]
        column[_EXACT_RANK] = of_ranks[1]


@njit(cache=True)
def _trace_users(
    scores: FloatArray,
    ratings: FloatArray,
    ends: IntArray,
    relevant_from: float,
    grid: FloatArray,
    curves: NDArray[np.float32],
) -> None:
    for user in range(len(ends) - 1):
        ordered, order = sort_descending(scores[ends[user] : ends[user + 1]])
        y = ratings[ends[user] : ends[user + 1]]
        false, true, _ = curve_counts(ordered, y[order] >= relevant_from)
        interpolate_curve(false, true, grid, curves[user])
