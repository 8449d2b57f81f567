"""SVRank: magnitude-preserving ranking with the ε-insensitive pair cost, n = 1 or 2."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.learners.base import FloatArray, check_targets, check_weights
from spark_rank.learners.kernel_machine import check_training, mean_target
from spark_rank.learners.pairs.losses import InsensitiveLoss
from spark_rank.learners.pairs.machine import HingeSum, PairMachine
from spark_rank.learners.pairs.weighted import (
    GroupedLoss,
    WeightedInsensitiveLoss,
    rows_of_groups,
)
from spark_rank.learners.parameters import Choice, Parameter, Real
from spark_rank.learners.ridge.grouped import check_groups


class SVRank(PairMachine):
    """Scores items so that score differences are within ε of rating differences.

    Minimises ``‖w‖² + (C/m²) Σ_ij max(0, |r_j − r_i| − ε)^n`` with residuals ``r = h − y`` and
    ``h = w·Φ(x)``, over all m² ordered pairs (Cortes, Mohri, Rastogi, eqs. 7 and 9). The paper's
    quadratic programme has m² constraints; here the loss, its gradient and its curvature come from
    sorted residuals, and the distance to the optimum is certified. ``epsilon=0`` is the cost of
    MPRank, with n = 2 the same model.
    Scores sit on the rating scale: their mean over the training items is the mean rating.

    Parameters
    ----------
    C : trade-off between fit and norm.
    epsilon : differences smaller than this cost nothing.
    power : n, 1 or 2.
    kernel, gamma, degree, coef0, rbf_weight : see `Kernel`; ``gamma=None`` is `scale_gamma`;
        ``precomputed`` takes kernel values instead of features.
    tol : stop at this relative duality gap.
    max_iter : stop after this many rounds; see `converged_`.

    Attributes
    ----------
    coef_ : w for the linear kernel, else None.
    dual_coef_ : α with ``h(x) = Σ α_j K(x_j, x) + intercept_`` for the other kernels, else None.
    support_ : the training rows, for kernels that need them.
    intercept_, gamma_ : the constant and the width used.
    y_min_, y_max_ : the range of the ratings learned from.
    objective_ : the objective reached.
    duality_gap_ : certified bound of ``(objective_ − minimum) / objective_``.
    n_iter_ : rounds done.
    converged_ : False if `max_iter` or rounding ended the search before `tol`. The model is then
        the best one found, and `duality_gap_` says how far from the optimum it may be. If rounding
        leaves no usable model, `fit` raises an error.

    Notes
    -----
    Linear kernel with up to 64 features or items: two to ten rounds of Newton's method, each
    O(m d² + d³) and one or two sorts, and O(m d) memory. With up to 128 Newton's method runs if the
    bundle method needs more than a dozen rounds. Otherwise rounds of the bundle method: O(m d) for
    the linear kernel with d < m, else O(m²), plus a dozen sorts; memory for the kernel matrix, if
    there is one, and O(m) per plane.

    A user with one rating, or whose ratings all lie within ε of each other, gets the constant
    model ``w = 0``.
    """

    parameters: ClassVar[dict[str, Parameter]] = PairMachine.parameters | {
        "epsilon": Real("differences up to this cost nothing", at_least=0.0),
        "power": Choice("n, the power of the cost", options=(1, 2)),
    }
    state: ClassVar[tuple[str, ...]] = (*PairMachine.state, "y_min_", "y_max_")
    takes_weights = True

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.25,
        power: int = 1,
        kernel: str = "linear",
        gamma: float | None = None,
        degree: int = 2,
        coef0: float = 1.0,
        rbf_weight: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 1000,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.power = power
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.rbf_weight = rbf_weight
        self.tol = tol
        self.max_iter = max_iter

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> SVRank:
        """Learn from the m×d matrix `X` and ratings `y`; with an `offset`, from ``y − offset``.

        A pair has the product of the weights of its examples, and m is the sum of all weights. With
        `qid`, an id of a query per example, only pairs of one query count: all queries share one w,
        and the sum over the pairs of a query with m_q examples has the factor C/(m m_q). A sparse
        `X` is for the linear kernel.
        """
        with self._unchanged_by_failure():
            self._fit(X, y, offset, sample_weight, qid)
        return self

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        offset: ArrayLike | None,
        sample_weight: ArrayLike | None,
        qid: ArrayLike | None,
    ) -> None:
        self.check_parameters()
        features = check_training(X, self.kernel)
        targets = check_targets(y, features.shape[0])
        self._note_columns(X, features.shape[1])
        weights = None if sample_weight is None else check_weights(sample_weight, len(targets))
        counted = targets if weights is None else targets[weights > 0.0]
        self.y_min_, self.y_max_ = float(counted.min()), float(counted.max())
        if offset is not None:
            targets = targets - check_targets(offset, len(targets), "offset")
        mean = mean_target(targets) if weights is None else _weighted_mean(targets, weights)
        loss = self._loss(targets - mean, weights, qid)
        self.intercept_ = mean - self._fit_machine(features, loss, weights)
        self.objective_ *= 2.0

    def _loss(
        self, targets: FloatArray, weights: FloatArray | None, qid: ArrayLike | None
    ) -> HingeSum:
        """Return half of the cost: the bundle method minimises ½‖w‖² + R."""
        m = float(len(targets)) if weights is None else float(weights.sum())
        options: dict[str, Any] = {"epsilon": self.epsilon, "power": self.power}
        if weights is None and qid is None:
            weight = 0.5 * self.C / len(targets) ** 2
            return InsensitiveLoss(targets, **options, weight=weight)
        ones = np.ones(len(targets)) if weights is None else weights
        groups = check_groups(qid, len(targets))
        rows = rows_of_groups(groups)
        losses = [
            WeightedInsensitiveLoss(
                targets[part], ones[part], **options,
                weight=0.5 * self.C / (m * (float(ones[part].sum()) or 1.0)),
            )
            for part in rows
        ]  # fmt: skip
        return losses[0] if len(losses) == 1 else GroupedLoss(rows, losses)

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> FloatArray:
        """Return the scores, clipped to the range of the training ratings."""
        return np.clip(self.decision_function(X, offset), self.y_min_, self.y_max_)


def _weighted_mean(targets: FloatArray, weights: FloatArray) -> float:
    counted = targets[weights > 0.0]
    if (counted == counted[0]).all():
        return float(counted[0])
    return float(weights @ targets / weights.sum())
