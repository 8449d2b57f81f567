"""RankSVM: a support vector machine on the order of pairs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.learners.base import FloatArray, check_targets, check_weights
from spark_rank.learners.kernel_machine import check_training
from spark_rank.learners.pairs.listed import check_pairs
from spark_rank.learners.pairs.losses import HingeLoss
from spark_rank.learners.pairs.machine import HingeSum, PairMachine
from spark_rank.learners.pairs.weighted import (
    GroupedLoss,
    ListedHingeLoss,
    WeightedHingeLoss,
    pair_mass,
    rows_of_groups,
)
from spark_rank.learners.parameters import Choice, Parameter
from spark_rank.learners.ridge.grouped import check_groups
from spark_rank.learners.rows import Row


class RankSVM(PairMachine):
    """Scores items so that higher-rated ones come first, by a margin of 1.

    Minimises ``½‖w‖² + C Σ_{y_i > y_j} max(0, 1 − (h_i − h_j))``, ``h = w·Φ(x)`` (Joachims 2002;
    Mohri, lecture on ranking, "Ranking with SVMs"): the ordinary SVM on differences of pairs,
    without building any pair. Only the order of the ratings counts. The sum is not divided by the
    number of pairs, so a C that suits a user with 10 ratings is large for one with 1,000; with
    ``loss="mean"`` it is, and one C suits users with few and with many ratings.

    Parameters
    ----------
    C : trade-off between fit and norm.
    kernel, gamma, degree, coef0, rbf_weight : see `Kernel`; ``gamma=None`` is `scale_gamma`;
        ``precomputed`` takes kernel values instead of features.
    tol : stop at this relative duality gap.
    max_iter : stop after this many rounds; see `converged_`.
    loss : ``sum`` is the sum above, ``mean`` the mean over the pairs (of weight 1).

    Attributes
    ----------
    coef_ : w for the linear kernel, else None.
    dual_coef_ : α with ``h(x) = Σ α_j K(x_j, x)`` for the other kernels, else None.
    support_ : the training rows, for kernels that need them.
    intercept_ : 0; a constant has no influence on an order.
    gamma_ : the width used.
    objective_ : the objective reached.
    duality_gap_ : certified bound of ``(objective_ − minimum) / objective_``.
    n_iter_ : rounds done.
    converged_ : False if `max_iter` or rounding ended the search before `tol`. The model is then
        the best one found, and `duality_gap_` says how far from the optimum it may be. If rounding
        leaves no usable model, `fit` raises an error.

    Notes
    -----
    Linear kernel with up to 64 features or items, and 16 levels: rounds of Newton's method, each
    O(m d² + d³ + m k d) and one or two evaluations of O(m k) for k levels, and O(m (d + k²))
    memory. With up to 128 Newton's method runs if the bundle method needs more than a dozen rounds.
    Otherwise rounds of the bundle method: O(m d) for the linear kernel with d < m, else O(m²), plus
    a dozen evaluations of O(m log m) by a sort and a Fenwick tree; memory for the kernel matrix, if
    there is one, and O(m) per plane.

    A user with one rating, or whose ratings are all equal, gets the constant model ``w = 0``.
    """

    parameters: ClassVar[dict[str, Parameter]] = PairMachine.parameters | {
        "loss": Choice("what C is a factor of, over the pairs", options=("sum", "mean")),
    }
    takes_weights = True

    on_rating_scale: ClassVar[bool] = False

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "linear",
        gamma: float | None = None,
        degree: int = 2,
        coef0: float = 1.0,
        rbf_weight: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 1000,
        loss: str = "sum",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.rbf_weight = rbf_weight
        self.tol = tol
        self.max_iter = max_iter
        self.loss = loss

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> RankSVM:
        """Learn from the m×d matrix `X` and the order of the ratings `y`.

        With an `offset` the scores are ``offset + w·Φ(x)``, in the margins too. A pair has the
        product of the weights of its examples. With `qid`, an id of a query per example, only pairs
        of one query count, and all queries share one w. A sparse `X` is for the linear kernel.
        """
        with self._unchanged_by_failure():
            self.check_parameters()
            features = check_training(X, self.kernel)
            self._note_columns(X, features.shape[1])
            targets = check_targets(y, features.shape[0])
            shift = None if offset is None else check_targets(offset, len(targets), "offset")
            weights = None if sample_weight is None else check_weights(sample_weight, len(targets))
            self._fit_machine(features, self._loss_of(targets, shift, weights, qid), weights)
            self.intercept_ = 0.0
        return self

    def fit_pairs(
        self,
        X: ArrayLike,
        left: ArrayLike,
        right: ArrayLike,
        sign: ArrayLike,
        weight: ArrayLike | None = None,
    ) -> RankSVM:
        """Learn from labelled pairs of rows of `X`, which need not agree with each other.

        Pair p says of the rows ``left[p]`` and ``right[p]`` which is preferred: 1 the right one, −1
        the left one, 0 nothing (Mohri's lecture, "Score-Based Ranking"). Its violation counts
        ``weight[p]`` times. O(pairs + m d) for an evaluation.
        """
        with self._unchanged_by_failure():
            self.check_parameters()
            features = check_training(X, self.kernel)
            self._note_columns(X, features.shape[1])
            pairs = check_pairs(left, right, sign, weight, features.shape[0])
            weights = pairs.weights * (self.C / self._divisor(float(pairs.weights.sum())))
            loss = ListedHingeLoss(pairs.lower, pairs.higher, weights, features.shape[0])
            self._fit_machine(features, loss)
            self.intercept_ = 0.0
        return self

    def _divisor(self, mass: float) -> float:
        """Return what C is divided by: 1, or the weight of all pairs."""
        return mass if self.loss == "mean" and mass > 0.0 else 1.0

    def _loss_of(
        self,
        targets: FloatArray,
        shift: FloatArray | None,
        weights: FloatArray | None,
        qid: ArrayLike | None,
    ) -> HingeSum:
        ones = np.ones(len(targets)) if weights is None else weights
        if qid is None:
            C = self.C
            if self.loss == "mean":
                C /= self._divisor(pair_mass(targets, ones))
            if weights is None:
                return HingeLoss(targets, weight=C, offset=shift)
            return WeightedHingeLoss(targets, ones, weight=C, offset=shift)
        rows = rows_of_groups(check_groups(qid, len(targets)))
        mass = sum(pair_mass(targets[part], ones[part]) for part in rows)
        losses = [
            WeightedHingeLoss(
                targets[part], ones[part], weight=self.C / self._divisor(mass),
                offset=None if shift is None else shift[part],
            )
            for part in rows
        ]  # fmt: skip
        return GroupedLoss(rows, losses)

    @classmethod
    def cost(cls, params: Row, n_train: float, width: int) -> float:
        """Return about how many core seconds a user takes; a rough guess for other kernels."""
        if params.get("kernel", "linear") == "linear":
            return 6e-4 + 1.6e-9 * n_train * width * min(n_train, width)
        return 7e-4 + 5e-7 * n_train * n_train
