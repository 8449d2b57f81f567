"""The multiclass perceptron: one prototype per rank, without their order; a rival of PRank."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.learners.base import FloatArray
from spark_rank.learners.parameters import Integer, Parameter
from spark_rank.learners.perceptrons.online import (
    OnlineLearner,
    check_examples,
    check_round,
    check_rule,
    linear_scores,
)
from spark_rank.learners.perceptrons.rounds import IntArray, perceptron_pass
from spark_rank.learners.rows import Row


class MulticlassPerceptron(OnlineLearner):
    """Predicts ``argmax_r M_r·x``; when wrong, moves all prototypes that scored at least as high.

    The ultraconservative perceptron with uniform shares (Crammer and Singer, COLT 2001): with
    ``E = { r ≠ y : M_r·x ≥ M_y·x }``, ``M_y += x`` and ``M_r −= x/|E|`` for r in E. If prototypes
    tie, the lowest rank is predicted, so the first prediction is 1. A round costs O(k d).

    Parameters
    ----------
    n_ranks : number of ranks k; None: the ranks are those of the levels of y.
    epochs : how many times `fit` goes through the sequence.

    Attributes
    ----------
    coef_ : the prototypes M, k×d; there are no thresholds.
    online_loss_ : average rank loss of the predictions so far, after each round.
    n_rounds_, total_loss_ : rounds learned, and the sum of their rank losses.
    """

    parameters: ClassVar[dict[str, Parameter]] = {
        "n_ranks": Integer("number of ranks k; null: as many as levels", at_least=2, optional=True),
        "epochs": Integer("passes over the sequence", at_least=1),
    }
    state: ClassVar[tuple[str, ...]] = ("coef_", "n_rounds_", "total_loss_")

    def __init__(self, n_ranks: int | None = None, *, epochs: int = 1) -> None:
        self.n_ranks = n_ranks
        self.epochs = epochs

    def prototype_scores(self, X: ArrayLike) -> FloatArray:
        """Return ``M_r·x``, one row per row of `X`, one column per rank."""
        features = check_examples(X, self._n_features())
        return np.column_stack([linear_scores(features, row) for row in self.coef_])

    def to_row(self) -> Row:
        """Return the prototypes: a row of weights for every rank."""
        return {"kernel": "linear", "prototypes": self._learned("coef_")}

    def _scores(self, X: ArrayLike) -> FloatArray:
        """Return the predicted rank as a real number.

        Prototypes give no finer order of the items than their ranks.
        """
        return self._ranks(X).astype(np.float64)

    def _ranks(self, X: ArrayLike) -> IntArray:
        """Return the rank of the best prototype for every row."""
        return self.prototype_scores(X).argmax(axis=1).astype(np.int64) + 1

    def _start(self, n_features: int) -> None:
        self.coef_ = np.zeros((self._rank_count(), n_features))

    def _learn(self, X: FloatArray, ranks: IntArray) -> IntArray:
        prototypes, losses = self.coef_.copy(), np.empty(len(X), dtype=np.int64)
        check_round(perceptron_pass(X, ranks, prototypes, np.empty(self._rank_count()), losses), X)
        check_rule(prototypes)
        self.coef_ = prototypes
        return losses
