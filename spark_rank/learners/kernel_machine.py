"""What MPRank, SVRank and RankSVM share: a kernel, and scores ``h(x) = w·Φ(x) + constant``."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf

from spark_rank.learners.base import FloatArray, Learner, check_features, check_targets
from spark_rank.learners.errors import InvalidDataError, NumericFailureError
from spark_rank.learners.kernels import KERNELS, Kernel, scale_gamma
from spark_rank.learners.parameters import Choice, Integer, Parameter, Real
from spark_rank.learners.rows import Row
from spark_rank.learners.sparse import check_sparse, is_sparse

# of a kernel matrix, as shares of its greatest entry
_ASYMMETRY = 1e-8
_INDEFINITE = 1e-8
_EPSILON = float(np.finfo(np.float64).eps)
_LOST_DIGITS = 1e-2  # share of the targets that rounding may make up: 0.1 on a scale of ten

KERNEL_PARAMETERS: dict[str, Parameter] = {
    "C": Real("trade-off between fit and norm", above=0.0),
    "kernel": Choice("kernel between items", options=KERNELS),
    "gamma": Real("width of the Gaussian, factor of the polynomial", above=0.0, optional=True),
    "degree": Integer("degree of the polynomial kernel", at_least=1),
    "coef0": Real("constant of the polynomial kernel", at_least=0.0),
    "rbf_weight": Real("weight of the Gaussian in a sum of kernels", above=0.0),
}


class KernelMachine(Learner):
    """Base of the learners whose model is a constant plus weights or dual coefficients.

    The linear kernel keeps w in ``coef_``; other kernels keep the training rows in ``support_``
    and α in ``dual_coef_``; a precomputed kernel keeps α alone.
    """

    scores_linearly = True
    state: ClassVar[tuple[str, ...]] = (
        "coef_",
        "dual_coef_",
        "support_",
        "intercept_",
        "gamma_",
        "objective_",
    )

    C: float
    kernel: str
    gamma: float | None
    degree: int
    coef0: float
    rbf_weight: float

    coef_: FloatArray | None
    dual_coef_: FloatArray | None
    support_: FloatArray | None
    intercept_: float
    gamma_: float | None
    objective_: float

    def _takes_sparse(self) -> bool:
        return self.kernel == "linear"

    def _width_in(self) -> int | None:
        if self.coef_ is not None:
            return len(self.coef_)
        if self.support_ is not None:
            return int(self.support_.shape[1])
        return None if self.dual_coef_ is None else len(self.dual_coef_)

    @np.errstate(over="ignore", invalid="ignore")  # what overflows is an error below
    def decision_function(self, X: ArrayLike, offset: ArrayLike | None = None) -> FloatArray:
        """Return the scores of the rows of `X`, plus their `offset`.

        With ``kernel="precomputed"`` a row of `X` holds the item's kernel values with the training
        items. O(d) an item for the linear kernel, O(m d) for others.
        """
        coef = self._learned("coef_")
        self._check_columns(X)
        if coef is not None:
            check = check_sparse if is_sparse(X) else check_items
            scores = check(X, len(coef)) @ coef
        else:
            scores = self._kernel_sums(X, self._learned("dual_coef_"))
        scores += self.intercept_
        if offset is not None:
            scores += check_targets(offset, len(scores), "offset")
        if not np.isfinite(scores).all():
            raise NumericFailureError("the scores overflowed: scale the features down")
        return scores

    def to_row(self) -> Row:
        """Return the constant, and weights or dual coefficients of all training examples."""
        row: Row = {"intercept": self.intercept_, "kernel": self.kernel, "gamma": self.gamma_}
        if self.coef_ is not None:
            return row | {"weights": self.coef_}
        return row | {"dual": self.dual_coef_}

    def _kernel_sums(self, X: ArrayLike, alpha: FloatArray) -> FloatArray:
        """Return the sums of the kernel values of the rows of `X` with the training items."""
        if self.support_ is None:
            return np.asarray(check_items(X, len(alpha)) @ alpha)
        points = check_items(X, self.support_.shape[1])
        if not alpha.any():  # a constant model, even if the kernel values are not finite
            return np.zeros(len(points))
        return self._kernel().balanced_sums(points, self.support_, alpha)

    def _near_origin(self, X: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Return the points, shifted so that kernel values keep their digits, and the shift.

        If α sums to 0, a shift changes the linear part of the kernel only by a constant.
        """
        origin = self._kernel().origin(X) if self.kernel != "precomputed" else None
        return (X, None) if origin is None else (X - origin, origin)

    def _width(self, X: FloatArray, weights: FloatArray | None = None) -> float | None:
        """Return γ, by default from these examples; None for kernels without γ."""
        if self.kernel in ("linear", "precomputed"):
            return None
        return self.gamma if self.gamma is not None else scale_gamma(X, weights)

    def _kernel(self) -> Kernel:
        gamma = 1.0 if self.gamma_ is None else self.gamma_
        return Kernel(self.kernel, gamma, self.degree, self.coef0, self.rbf_weight)


def check_training(X: Any, kernel: str) -> Any:
    """Return checked training features; sparse ones stay sparse, for the linear kernel."""
    if not is_sparse(X):
        return check_items(X)
    if kernel != "linear":
        raise InvalidDataError(f"X is sparse, which kernel={kernel!r} cannot use: give X.toarray()")
    return check_sparse(X)


def check_items(X: ArrayLike, n_features: int | None = None) -> FloatArray:
    """Return checked features in one memory layout: the same numbers give the same bits."""
    return np.ascontiguousarray(check_features(X, n_features))


def centre_gram(gram: FloatArray) -> FloatArray:
    """Centre the rows and columns of a kernel matrix in place; return its former row means."""
    row_means = gram.mean(axis=1)
    gram -= row_means[:, None]
    gram -= row_means - row_means.mean()
    return np.asarray(row_means)


def check_digits(alpha: FloatArray, greatest: float, targets: FloatArray) -> None:
    """Raise `NumericFailureError` if rounding of kernel values outweighs the scores.

    An error of the share ε in values up to `greatest` moves a score by up to ε·greatest·Σ|α|.
    """
    if not math.isfinite(greatest):
        raise NumericFailureError("the kernel overflowed: scale the features down")
    moved = 4.0 * _EPSILON * greatest * float(np.abs(alpha).sum())
    if not moved <= _LOST_DIGITS * float(np.abs(targets).max(initial=0.0)):
        raise NumericFailureError(
            "the solution is lost in rounding: lower C, or centre the features and scale them down"
        )


def mean_target(targets: FloatArray) -> float:
    """Return the mean; if all targets are equal, exactly their value."""
    first = float(targets[0])
    return first if (targets == first).all() else float(targets.sum() / len(targets))


def check_gram(gram: FloatArray) -> FloatArray:
    """Return a precomputed training kernel or raise `InvalidDataError`: O(m³), one Cholesky.

    It must be positive semi-definite on vectors that sum to 0, as α does.
    """
    if gram.shape[0] != gram.shape[1]:
        raise InvalidDataError(
            f"a precomputed kernel must be square for training, not {gram.shape}: give the kernel "
            "values of every training item with every other"
        )
    greatest = np.abs(gram).max(initial=0.0)
    if np.abs(gram - gram.T).max(initial=0.0) > _ASYMMETRY * greatest:
        raise InvalidDataError("the precomputed kernel is not symmetric: give (K + Kᵀ)/2")
    if greatest > 0.0 and not _is_semi_definite(gram / greatest):
        raise InvalidDataError(
            "the precomputed kernel is not positive semi-definite: clip its negative eigenvalues "
            "to 0"
        )
    return gram


def _is_semi_definite(gram: FloatArray) -> bool:
    """Return whether a matrix with entries up to 1 has no negative eigenvalue once centred."""
    gram -= gram.mean(axis=0)
    gram -= gram.mean(axis=1)[:, None]
    gram.flat[:: len(gram) + 1] += _INDEFINITE
    return bool(dpotrf(gram, lower=1, overwrite_a=1)[1] == 0)
