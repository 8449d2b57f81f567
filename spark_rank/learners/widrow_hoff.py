"""Widrow–Hoff: online least squares on the ranks, the regression rival of PRank."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.learners.base import FloatArray
from spark_rank.learners.parameters import Integer, Parameter, Real
from spark_rank.learners.perceptrons.online import (
    OnlineLearner,
    check_examples,
    check_round,
    check_rule,
    linear_scores,
)
from spark_rank.learners.perceptrons.rounds import IntArray, Rule, widrow_hoff_pass
from spark_rank.rank_rule import cuts_between, ranks_from_scores

_REMEDY = "lower eta (below 2/‖x‖² for the longest example) or scale the features down"


class WidrowHoff(OnlineLearner):
    """Moves ``w += η (y − w·x) x`` at every round and predicts the nearest rank.

    Widrow and Hoff (1960), as compared with PRank by Crammer and Singer (2001, sec. 4); there
    η = 1, in Harrington (2003) 0.1. A round costs O(d + k). If the step size is too large for the
    features, the weights grow without bound, which raises `NumericFailureError`.

    Parameters
    ----------
    n_ranks : number of ranks k; None: the ranks are those of the levels of y.
    eta : step size η.
    epochs : how many times `fit` goes through the sequence.

    Attributes
    ----------
    coef_ : w.
    thresholds_ : 1.5, 2.5, …, k − ½, which makes the nearest rank (half up, clipped to 1..k)
        the same rule ``min { r : w·x − b_r < 0 }`` as PRank's.
    online_loss_ : average rank loss of the predictions so far, after each round.
    n_rounds_, total_loss_ : rounds learned, and the sum of their rank losses.
    """

    scores_linearly = True
    parameters: ClassVar[dict[str, Parameter]] = {
        "n_ranks": Integer("number of ranks k; null: as many as levels", at_least=2, optional=True),
        "eta": Real("step size", above=0.0),
        "epochs": Integer("passes over the sequence", at_least=1),
    }
    state: ClassVar[tuple[str, ...]] = ("coef_", "thresholds_", "n_rounds_", "total_loss_")

    def __init__(self, n_ranks: int | None = None, *, eta: float = 0.1, epochs: int = 1) -> None:
        self.n_ranks = n_ranks
        self.eta = eta
        self.epochs = epochs

    def _scores(self, X: ArrayLike) -> FloatArray:
        """Return w·x, a real number on the scale of the ranks."""
        return linear_scores(check_examples(X, self._n_features()), self.coef_)

    def _ranks(self, X: ArrayLike) -> IntArray:
        """Return the nearest rank of every row."""
        return ranks_from_scores(self._scores(X), self.thresholds_)

    def _start(self, n_features: int) -> None:
        self.coef_ = np.zeros(n_features)
        self.thresholds_ = cuts_between(np.arange(1, self._rank_count() + 1))

    def _learn(self, X: FloatArray, ranks: IntArray) -> IntArray:
        rule = Rule(self.coef_.copy(), self.thresholds_.copy())
        losses = np.empty(len(X), dtype=np.int64)
        check_round(widrow_hoff_pass(X, ranks, float(self.eta), rule, losses), X, _REMEDY)
        check_rule(rule.coef, _REMEDY)
        self.coef_ = rule.coef
        return losses
