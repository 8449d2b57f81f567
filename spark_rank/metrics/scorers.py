"""Metrics as scorers for the searches of scikit-learn: more is better, so each has a minus.

``GridSearchCV(MPRank(), grid, scoring=misranking_scorer)`` chooses by the misranking of held-out
examples. Where a metric is undefined, such as the misranking of equal ratings, the score is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.metrics.pairs import mean_squared_difference, pairwise_misranking
from spark_rank.metrics.ranks import rank_loss


def misranking_scorer(estimator: Any, X: ArrayLike, y: ArrayLike) -> float:
    """Return minus the share of misranked pairs, of any estimator that scores or predicts."""
    return _negative(pairwise_misranking(_scores(estimator, X), y))


def msd_scorer(estimator: Any, X: ArrayLike, y: ArrayLike) -> float:
    """Return minus the MSD, of any estimator whose scores are on the rating scale."""
    return _negative(mean_squared_difference(_scores(estimator, X), y))


def rank_loss_scorer(estimator: Any, X: ArrayLike, y: ArrayLike) -> float:
    """Return minus the mean distance of predicted and true ranks.

    Values are ranks, unless the estimator has learned levels: then ranks are positions among these.
    """
    predicted, truth = np.asarray(estimator.predict(X)), np.asarray(y)
    levels = getattr(estimator, "levels_", None)
    if levels is not None:
        rank_of = {level: rank for rank, level in enumerate(levels.tolist(), 1)}
        predicted, truth = (
            np.array([rank_of[value] for value in values.tolist()]) for values in (predicted, truth)
        )
    return _negative(rank_loss(predicted, truth))


def _scores(estimator: Any, X: ArrayLike) -> Any:
    scores = getattr(estimator, "decision_function", None)
    return scores(X) if scores is not None else estimator.predict(X)


def _negative(value: float | None) -> float:
    return float("nan") if value is None else -value
