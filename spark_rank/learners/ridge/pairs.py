"""Solves MPRank's problem, a ridge regression with a free intercept, by the cheaper solver."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import NumericFailureError, warn_not_converged
from spark_rank.learners.kernel_machine import KernelMachine, centre_gram, check_digits
from spark_rank.learners.kernels import mean_row
from spark_rank.learners.ridge import leave_pair_out, online
from spark_rank.learners.ridge.grouped import Centring, solve_kernel, solve_linear
from spark_rank.learners.ridge.path import trace_path
from spark_rank.learners.ridge.systems import (
    is_faint,
    ridge_of,
    solve_by_axes,
    solve_centred,
    solve_ridge,
    solve_weighted,
)

_SAFE_RIDGE = 1e-13  # share of m times the trace; above it rounding moves scores by less than 1 %


class PairRidge(KernelMachine):
    """Base of `MPRank`: fits checked features and targets, and leaves pairs out of the fit."""

    solver: str
    ridge: str
    growth: float
    tol: float
    max_rounds: int
    eta: float | None
    n_rounds_: int
    cost_path_: FloatArray
    converged_: bool

    _residuals: FloatArray | None
    _fitted_constant: bool

    def _fit(self, features: FloatArray, targets: FloatArray) -> None:
        self._residuals = None
        if self._fitted_constant:
            self._accept_constant(features, float(targets[0]))
        elif self._is_primal(*features.shape):
            self._fit_primal(features, targets)
        elif self.solver == "online":
            self._fit_online(features, targets)
        else:
            self._fit_dual(features, targets)

    def _fit_weighted(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Fit weighted examples: an example of weight 2 counts as two."""
        self._residuals = None
        ridge = self._ridge(float(weights.sum()))
        if self._fitted_constant:
            counts = y[weights > 0.0]
            self._accept_constant(X, float(counts[0]))
        elif self._is_primal(*X.shape):
            self._fit_weighted_primal(X, y, weights, ridge)
        else:
            self._fit_weighted_dual(X, y, weights, ridge)

    def _fit_weighted_primal(
        self, X: FloatArray, y: FloatArray, weights: FloatArray, ridge: float
    ) -> None:
        total, roots = weights.sum(), np.sqrt(weights)
        x_mean, y_mean = weights @ X / total, float(weights @ y / total)
        rows, targets = (X - x_mean) * roots[:, None], (y - y_mean) * roots
        self._accept_primal(rows, targets, x_mean, y_mean, ridge)

    def _fit_weighted_dual(
        self, X: FloatArray, y: FloatArray, weights: FloatArray, ridge: float
    ) -> None:
        mean = float(weights @ y / weights.sum())
        origin = None if self.kernel == "precomputed" else self._near_origin(X)[1]
        gram = X.copy() if self.kernel == "precomputed" else self._gram(X)
        alpha, constant = solve_weighted(gram, y - mean, weights, ridge)
        check_digits(alpha, self._greatest(X), y - mean)
        self._accept_dual(X, alpha, mean + constant, origin)
        self.objective_ = float(alpha @ (y - mean))

    def _fit_centred(self, X: Any, y: FloatArray, centring: Centring) -> None:
        """Fit examples in groups, of which only pairs inside a group count; X may be sparse."""
        self._residuals = None
        ridge, mean = self._ridge(float(centring.weights.sum())), float(centring.overall(y))
        if not centring.of(y).any():
            self._accept_constant(X, mean)
            return
        if self.kernel == "linear":
            primal = self._is_primal(*X.shape)
            found = solve_linear(X, y, centring, ridge, primal=primal)
            self.coef_, self.dual_coef_, self.support_ = found.coef, found.dual, None
            self.intercept_ = mean - float(centring.overall(X @ found.coef))
            self.objective_ = found.objective
            return
        origin = None if self.kernel == "precomputed" else self._near_origin(X)[1]
        gram = X.copy() if self.kernel == "precomputed" else self._gram(X)
        alpha, objective = solve_kernel(gram, y, centring, ridge)
        check_digits(alpha, self._greatest(X), y - mean)
        self._accept_dual(X, alpha, mean - float(centring.overall(gram @ alpha)), origin)
        self.objective_ = objective

    def _leave_pair_out(self, X: FloatArray, y: FloatArray, ridge: float) -> float:
        primal = self._is_primal(*X.shape)
        matrix = X if primal else self._gram(X)
        trace = float(np.square(X - X.mean(axis=0)).sum()) if primal else matrix.trace()
        if is_faint(ridge, trace):
            features = self.kernel == "linear"
            matrix = X if features else matrix
            return float(trace_path(matrix, y, np.array([ridge]), primal=features).errors[0])
        if primal:
            residual_maker = leave_pair_out.residual_maker_from_features(X, ridge)
        else:
            residual_maker = leave_pair_out.residual_maker_from_gram(matrix, ridge)
        return leave_pair_out.error(residual_maker, residual_maker @ (y - y.mean()))

    def _path_matrix(
        self, X: FloatArray, ridge: float
    ) -> tuple[FloatArray, bool, FloatArray | None]:
        """Return the matrix that a path decomposes, whether it has features, and its origin."""
        if self._is_primal(*X.shape):
            return X, True, None
        matrix = self._gram(X)
        if self.kernel == "linear" and is_faint(ridge, matrix.trace()):
            return X, True, None
        return matrix, False, self._near_origin(X)[1]

    def _is_primal(self, m: int, d: int) -> bool:
        if self.kernel != "linear" or self.solver in ("dual", "online"):
            return False
        return d > 0 and (self.solver == "primal" or d < m)

    def _ridge(self, m: float) -> float:
        """Return 1/C′: with the paper's C′ = 2C/m, or the same for every m; plus growth."""
        ridge = ridge_of(self.C, self.ridge, self.growth, m)
        if not 0.0 < ridge < math.inf:
            raise NumericFailureError(f"C={self.C} makes a ridge of {ridge}: take one nearer 1")
        return ridge

    def _gram(self, X: FloatArray) -> FloatArray:
        """Return the m×m kernel matrix, of shifted points so that values keep their digits."""
        if self.kernel == "precomputed":
            gram = X.copy()
            centre_gram(gram)
            return gram
        points, _ = self._near_origin(X)
        return self._kernel()(points, points)

    def _greatest(self, X: FloatArray) -> float:
        """Return the greatest kernel value, which is on the diagonal."""
        if self.kernel == "precomputed":
            return float(np.abs(X).max())
        return self._kernel().greatest(self._near_origin(X)[0])

    def _fit_primal(self, X: FloatArray, y: FloatArray) -> None:
        # eq. 11: w = (I/C′ + XᵀX)⁻¹ Xᵀy with centred X and y
        ridge = self._ridge(len(y))
        x_mean, y_mean = X.mean(axis=0), y.mean()
        self._residuals = self._accept_primal(X - x_mean, y - y_mean, x_mean, y_mean, ridge)

    def _accept_primal(
        self, rows: FloatArray, targets: FloatArray, x_mean: FloatArray, y_mean: float, ridge: float
    ) -> FloatArray:
        """Take over the solution for centred rows and targets; return their residuals."""
        scatter = rows.T @ rows
        if is_faint(ridge, float(scatter.trace())):
            coef = solve_by_axes(rows, targets, ridge)[0]
        else:
            coef = solve_ridge(scatter, rows.T @ targets, ridge)
        residuals = np.asarray(rows @ coef - targets)
        self.coef_, self.dual_coef_, self.support_ = coef, None, None
        self.intercept_ = float(y_mean - x_mean @ coef)
        self.objective_ = float(coef @ coef) + float(residuals @ residuals) / ridge
        return residuals

    def _fit_dual(self, X: FloatArray, y: FloatArray) -> None:
        if self.kernel == "linear":
            self._fit_linear_dual(X, y)
            return
        ridge, mean = self._ridge(len(y)), float(y.sum() / len(y))
        targets, row_means = y - mean, None
        if self.kernel == "precomputed":
            gram, origin = X.copy(), None
            row_means = centre_gram(gram)
        else:
            points, origin = self._near_origin(X)
            gram = self._kernel().upper(points)
        # Σ|α| is at most m · max|y| / ridge
        few_digits = not ridge > _SAFE_RIDGE * len(y) * gram.trace()
        alpha, constant = solve_centred(gram, targets, ridge)
        if few_digits or row_means is not None:
            check_digits(alpha, self._greatest(X), targets)
        if row_means is not None:
            constant -= float(row_means @ alpha)
        self._accept_dual(X, alpha, mean + constant, origin)
        self.objective_ = float(alpha @ targets)
        # (I/C′ + K) α = y − b·1
        self._residuals = -ridge * alpha

    def _fit_linear_dual(self, X: FloatArray, y: FloatArray) -> None:
        ridge, mean = self._ridge(len(y)), float(y.sum() / len(y))
        points, origin = self._near_origin(X)
        gram, targets = points @ points.T, y - mean
        if is_faint(ridge, float(gram.trace())):
            coef, alpha = solve_by_axes(points, targets, ridge)
            self._accept_dual(X, alpha, mean - float(X.mean(axis=0) @ coef), None)
            self.coef_ = coef
        else:
            alpha, constant = solve_centred(gram, targets, ridge)
            self._accept_dual(X, alpha, mean + constant, origin)
        self.objective_ = float(alpha @ targets)
        self._residuals = -ridge * alpha

    def _fit_online(self, X: FloatArray, y: FloatArray) -> None:
        gram = X.copy() if self.kernel == "precomputed" else self._gram(X)
        row_means = centre_gram(gram)
        alpha, costs = online.solve(
            gram, y - y.mean(), self._ridge(len(y)), self.tol, self.max_rounds, self.eta
        )
        alpha -= alpha.mean()  # before convergence Σα is not 0, which only moves the constant
        check_digits(alpha, self._greatest(X), y - y.mean())
        self._accept_dual(X, alpha, y.mean() - row_means @ alpha, self._near_origin(X)[1])
        self.n_rounds_, self.cost_path_ = len(costs), costs
        self.objective_ = float(costs[-1])
        centred = y - y.mean()
        before = costs[-2] if len(costs) > 1 else float(centred @ centred) / self._ridge(len(y))
        self.converged_ = bool(abs(before - costs[-1]) <= self.tol * abs(before))
        if not self.converged_:
            warn_not_converged(
                f"{len(costs)} rounds left the cost changing by more than the share {self.tol}: "
                "raise max_rounds or tol, or lower C"
            )

    def _accept_constant(self, X: FloatArray, target: float) -> None:
        """Take over ``w = 0``: from equal targets there is nothing to learn."""
        m, d = X.shape
        self.dual_coef_ = None if self._is_primal(m, d) else np.zeros(m)
        self.coef_ = np.zeros(d) if self.kernel == "linear" else None
        self.support_ = None if self.kernel in ("linear", "precomputed") else X
        self.intercept_, self.objective_, self._residuals = target, 0.0, np.zeros(m)

    def _accept_dual(
        self, X: FloatArray, alpha: FloatArray, intercept: float, origin: FloatArray | None
    ) -> None:
        """Take over a dual solution with Σα = 0, of kernel values between ``X − origin``."""
        self.dual_coef_, self.coef_, self.support_ = alpha, None, None
        self.intercept_ = float(intercept)
        if "linear" in self.kernel:
            # because Σα = 0, centring the rows only improves the digits
            linear_part = alpha @ (X - (mean_row(X) if origin is None else origin))
            if origin is not None:
                self.intercept_ -= float(origin @ linear_part)
        if self.kernel == "linear":
            self.coef_ = linear_part
        elif self.kernel != "precomputed":
            self.support_ = X
