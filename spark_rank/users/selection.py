"""Measures the points of a grid on one user: held-back ratings, leave-pair-out, or k folds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.learners.errors import LearnerError
from spark_rank.metrics import mean_squared_difference, pairwise_misranking
from spark_rank.users.fitting import Fitted, Limits, Sample, fit
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import LearnerSpec, Params

# fewer ratings than this are too few for folds and for leaving a pair out
MIN_RATINGS = 4

Vector = NDArray[np.float64]


def candidate_errors(spec: LearnerSpec, sample: Sample, limits: Limits) -> Vector | None:
    """Return the error of every point of the grid, infinite where learning failed.

    For MPRank it is the exact leave-pair-out error, unless `selection` asks for folds. For others
    it is the mean over folds of the error on the ratings left out: the mean squared difference
    over pairs, the rank loss of learners of ranks, or the misranking of learners that only order
    items. None if the ratings are too few, all equal, or, for an order, equal in every fold.
    """
    if sample.weights is not None:
        raise LearnerError(
            "a grid cannot be searched with weights: set one value per hyper-parameter"
        )
    size = len(sample.ratings)
    if size < MIN_RATINGS or sample.ratings.min() == sample.ratings.max():
        return None
    if _leaves_pairs_out(spec, sample, limits):
        return _leave_pair_out_errors(spec, sample)
    folds = _folds(size, limits.folds)
    if spec.measure == "misranking" and not any(np.ptp(sample.ratings[fold]) for fold in folds):
        return None
    return np.array([_fold_error(spec, params, sample, folds, limits)
                     for params in spec.candidates()])  # fmt: skip


def best_candidate(spec: LearnerSpec, sample: Sample, limits: Limits) -> Params:
    """Return the best hyper-parameters for this user, by the prior if there is one.

    Without a prior they are those of least error. The first point is taken among equals, and if
    the errors are undefined.
    """
    errors = candidate_errors(spec, sample, limits)
    if spec.prior is not None:
        return spec.candidates()[spec.prior.best(errors, len(sample.ratings))]
    return spec.candidates()[0 if errors is None else int(np.argmin(errors))]


def held_back_errors(
    spec: LearnerSpec, learned_from: Sample, held_back: Sample, limits: Limits
) -> Vector | None:
    """Return the error of every point on ratings that were held back, infinite where it failed.

    The squared difference is the mean over pairs of different items, so that few held-back items
    do not lower it. None if the error is undefined.
    """
    ratings, size = learned_from.ratings, len(held_back.ratings)
    if len(ratings) < 2 or ratings.min() == ratings.max() or size < 2:
        return None
    if spec.measure == "misranking" and np.ptp(held_back.ratings) == 0.0:
        return None
    factor = size / (size - 1) if spec.measure == "msd" else 1.0
    errors = [_left_out_error(spec, params, learned_from, held_back, limits)
             for params in spec.candidates()]  # fmt: skip
    return factor * np.array(errors, dtype=np.float64)


def _leaves_pairs_out(spec: LearnerSpec, sample: Sample, limits: Limits) -> bool:
    # the hat matrix of every C has m² entries
    fits = len(sample.ratings) <= limits.max_kernel_ratings
    return spec.kind.exact_leave_pair_out and spec.selection != "k_fold" and fits


def _leave_pair_out_errors(spec: LearnerSpec, sample: Sample) -> Vector:
    """Return the error of every point; all values of C share one factorisation."""
    learner: Any = spec.kind
    candidates = spec.candidates()
    errors = np.full(len(candidates), np.inf)
    groups: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    for position, params in enumerate(candidates):
        others = tuple((name, value) for name, value in params.items() if name != "C")
        groups.setdefault(others, []).append(position)
    for others, positions in groups.items():
        strengths = [candidates[position].get("C", 1.0) for position in positions]
        try:
            path = learner.path(
                sample.X, sample.ratings, strengths, offset=sample.offset, **dict(others)
            )
        except LearnerError:
            continue
        path_errors = path.leave_pair_out
        errors[positions] = np.where(np.isfinite(path_errors), path_errors, np.inf)
    return errors


def _folds(size: int, folds: int) -> list[NDArray[np.int64]]:
    """Return the positions of each fold; a fold has at least two ratings, to have a pair."""
    n_folds = max(2, min(folds, size // 2))
    return [np.arange(first, size, n_folds) for first in range(n_folds)]


def _fold_error(
    spec: LearnerSpec,
    params: Params,
    sample: Sample,
    folds: Sequence[NDArray[np.int64]],
    limits: Limits,
) -> float:
    total, weight = 0.0, 0
    for fold in folds:
        learned_from = np.setdiff1d(np.arange(len(sample.ratings)), fold)
        error = _left_out_error(spec, params, sample.part(learned_from), sample.part(fold), limits)
        if error is not None:
            total, weight = total + error * len(fold), weight + len(fold)
    return total / weight


def _left_out_error(
    spec: LearnerSpec, params: Params, learned_from: Sample, left_out: Sample, limits: Limits
) -> float | None:
    """Return the error on the ratings left out, infinite after a failure; None if undefined."""
    try:
        return _error(fit(spec, params, learned_from, limits), left_out, limits.scale)
    except LearnerError:
        return math.inf


def _error(fitted: Fitted, left_out: Sample, scale: RankScale | None) -> float | None:
    ranks = fitted.ranks(left_out.X, left_out.offset)
    if ranks is not None and scale is not None:
        return float(np.abs(ranks - scale.ranks(left_out.ratings)).mean())
    scores = fitted.scores(left_out.X, left_out.offset)
    if fitted.learner.on_rating_scale:
        return mean_squared_difference(scores, left_out.ratings)
    return pairwise_misranking(scores, left_out.ratings)
