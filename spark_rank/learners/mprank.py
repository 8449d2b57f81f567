"""MPRank: magnitude-preserving ranking with the squared pair cost (n = 2)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dposv

from spark_rank.learners.base import FloatArray, Learner, check_features, check_targets
from spark_rank.learners.errors import NumericFailureError
from spark_rank.learners.kernels import KERNELS, Kernel, scale_gamma
from spark_rank.learners.parameters import Choice, Integer, Parameter, Real


class MPRank(Learner):
    """Scores items so that differences of scores match differences of ratings.

    Minimises ``‖w‖² + (C/m²) Σ_ij ((h_j − h_i) − (y_j − y_i))²`` with ``h = w·Φ(x)``
    (Cortes, Mohri, Rastogi, eq. 8, n = 2). The double sum is ``2m Σ (r_i − r̄)²`` with residuals
    ``r = h − y``: kernel ridge regression with an unpenalised intercept and ridge ``m/(2C)``.
    Scores sit on the rating scale: their mean over the training items is the mean rating.

    Parameters
    ----------
    C : trade-off between fit and norm.
    kernel, gamma, degree, coef0, rbf_weight : see `Kernel`; ``gamma=None`` is `scale_gamma`.
    solver : ``primal`` costs O(m d² + d³) and is for the linear kernel only, ``dual``
        O(m² d + m³); ``auto`` takes the cheaper.
    ridge : ``per-example`` is the paper's m/(2C); ``fixed`` is 1/C, a noise variance that does
        not grow with m.

    Attributes
    ----------
    coef_ : w for the linear kernel, else None.
    dual_coef_ : α with ``h(x) = Σ α_j K(x_j, x) + intercept_``; None after the primal solver.
    support_ : the training rows that kernels other than the linear one need, else None.
    intercept_, gamma_, objective_ : the constant, the width used, the minimum reached.

    A user whose ratings are all equal, or with one rating, gets the constant model ``w = 0``.
    """

    parameters: ClassVar[dict[str, Parameter]] = {
        "C": Real("trade-off between fit and norm", above=0.0),
        "kernel": Choice("kernel between items", options=KERNELS[:-1]),
        "gamma": Real("width of the Gaussian, factor of the polynomial", above=0.0, optional=True),
        "degree": Integer("degree of the polynomial kernel", at_least=1),
        "coef0": Real("constant of the polynomial kernel", at_least=0.0),
        "rbf_weight": Real("weight of the Gaussian in a sum of kernels", above=0.0),
        "solver": Choice("how to solve", options=("auto", "primal", "dual")),
        "ridge": Choice("how the ridge follows from C", options=("per-example", "fixed")),
    }
    state: ClassVar[tuple[str, ...]] = (
        "coef_",
        "dual_coef_",
        "support_",
        "intercept_",
        "gamma_",
        "objective_",
    )

    coef_: FloatArray | None
    dual_coef_: FloatArray | None
    support_: FloatArray | None
    gamma_: float | None

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "linear",
        gamma: float | None = None,
        degree: int = 2,
        coef0: float = 1.0,
        rbf_weight: float = 1.0,
        solver: str = "auto",
        ridge: str = "per-example",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.rbf_weight = rbf_weight
        self.solver = solver
        self.ridge = ridge

    def fit(self, X: ArrayLike, y: ArrayLike, offset: ArrayLike | None = None) -> MPRank:
        """Learn from the m×d matrix `X` and ratings `y`; with an `offset`, from ``y − offset``."""
        self.check_parameters()
        features = check_features(X)
        targets = check_targets(y, len(features))
        if offset is not None:
            targets = targets - check_targets(offset, len(features), "offset")
        mean = float(targets.mean())
        centred = targets - mean
        if self._is_primal(*features.shape):
            residuals, norm = self._fit_primal(features, centred)
        else:
            residuals, norm = self._fit_dual(features, centred)
        self.intercept_ += mean
        self.objective_ = float(norm + residuals @ residuals / self._ridge(len(targets)))
        if not np.isfinite(self.objective_):
            raise NumericFailureError("the solution overflowed: scale the features down")
        return self

    def decision_function(self, X: ArrayLike, offset: ArrayLike | None = None) -> FloatArray:
        """Return the scores of the rows of `X`, on the rating scale."""
        coef, support = self._learned("coef_"), self._learned("support_")
        width = len(coef) if coef is not None else support.shape[1]
        features = check_features(X, width)
        if coef is not None:
            scores = features @ coef + self.intercept_
        else:
            alpha = self._learned("dual_coef_")
            scores = self._kernel()(features, support) @ alpha + self.intercept_
        if offset is not None:
            scores = scores + check_targets(offset, len(features), "offset")
        return scores

    def _is_primal(self, m: int, d: int) -> bool:
        if self.kernel != "linear" or self.solver == "dual":
            return False
        return self.solver == "primal" or d < m

    def _ridge(self, m: int) -> float:
        """1/C′: the paper's C′ = 2C/m, or the same noise variance for every m."""
        return m / (2.0 * self.C) if self.ridge == "per-example" else 1.0 / self.C

    def _kernel(self) -> Kernel:
        return Kernel(self.kernel, self.gamma_ or 1.0, self.degree, self.coef0, self.rbf_weight)

    def _fit_primal(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
        # eq. 11: w = (I/C′ + XᵀX)⁻¹ Xᵀy with centred X and y
        mean = X.mean(axis=0)
        centred = X - mean
        coef = _solve_ridge(centred.T @ centred, centred.T @ y, self._ridge(len(y)))
        self.coef_, self.dual_coef_, self.support_ = coef, None, None
        self.gamma_ = None
        self.intercept_ = -float(mean @ coef)
        return centred @ coef - y, float(coef @ coef)

    def _fit_dual(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
        # α = (I/C′ + K̃)⁻¹ y with K̃ = HKH; Σα = 0, so centring the support changes no score
        linear = self.kernel == "linear"
        self.gamma_ = None if linear else self.gamma if self.gamma is not None else scale_gamma(X)
        points = X - X.mean(axis=0) if linear else X
        gram = points @ points.T if linear else self._kernel()(points, points)
        row_means = gram.mean(axis=1)
        centred = gram - row_means[:, None] - row_means[None, :] + row_means.mean()
        ridge = self._ridge(len(y))
        alpha = _solve_ridge(centred, y, ridge)
        self.dual_coef_ = alpha
        self.coef_ = points.T @ alpha if linear else None
        self.support_ = None if linear else X.copy()
        raw_mean = X.mean(axis=0) @ self.coef_ if linear else row_means @ alpha
        self.intercept_ = -float(raw_mean)
        residuals = -ridge * alpha
        return residuals, float(alpha @ (y - ridge * alpha))


def _solve_ridge(matrix: FloatArray, right: FloatArray, ridge: float) -> FloatArray:
    """Return (matrix + ridge·I)⁻¹ right by one Cholesky; `matrix` is overwritten."""
    matrix.flat[:: len(matrix) + 1] += ridge
    # the diagonal bounds every entry of such a matrix; with infinities Cholesky "succeeds"
    if not np.isfinite(matrix.trace()):
        raise NumericFailureError("the kernel matrix overflowed: scale the features down")
    # the transpose of a symmetric C-ordered matrix is the Fortran-ordered matrix, uncopied
    _, solution, info = dposv(matrix.T, right, lower=1, overwrite_a=1)
    if info != 0:
        raise NumericFailureError(
            "the ridge system is not positive definite: lower C, or scale the features down"
        )
    return solution
