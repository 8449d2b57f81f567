"""The base class of SVRank and RankSVM: a kernel machine with a pair loss."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import NumericFailureError, warn_not_converged
from spark_rank.learners.kernel_machine import (
    KERNEL_PARAMETERS,
    KernelMachine,
    centre_gram,
    check_gram,
)
from spark_rank.learners.pairs.bundle import GramProduct, Plane, Solution, minimise
from spark_rank.learners.pairs.certificates import (
    Point,
    certified,
    point_of_dual,
    point_of_weights,
)
from spark_rank.learners.pairs.losses import HingeLoss, InsensitiveLoss
from spark_rank.learners.pairs.smooth_newton import NewtonSolution, minimise_by_newton
from spark_rank.learners.pairs.weighted import BundleLoss
from spark_rank.learners.parameters import Integer, Parameter, Real
from spark_rank.learners.sparse import is_sparse

Hinges = InsensitiveLoss | HingeLoss
HingeSum = Hinges | BundleLoss
Found = TypeVar("Found", bound=Solution | NewtonSolution)

_FEW_FEATURES = 64  # or items: up to here Newton's method is faster
_SOME_FEATURES = 128  # or items: up to here Newton's method is tried if the bundle method is slow
_FIRST_ROUNDS = 12
_SPANNED = 512  # items up to which features that span them are found where rounding is great
_NOISE = 1e-14  # eigenvalues below this share of the greatest, an item, are rounding
_LOST = 0.9  # a gap like this, and no round that lessens it: the model may be anything
_OVERFLOWED = "the solution overflowed: lower C, or scale X down"
_FEW_GROUPS = 16  # of k groups all k (k − 1) / 2 pairs are gone through


class PairMachine(KernelMachine):
    """Base of the learners that minimise ``½‖w‖² + R(h)``, ``h = w·Φ(x)``, R a pair loss.

    With the linear kernel and few features or few items, w is found by a smoothing Newton method,
    see `smooth_newton`; if rounding stops it before the tolerance, the bundle method continues from
    its last plane. Otherwise the bundle method runs; if rounding stops it with another kernel, and
    there are not too many items, Newton's method runs on coordinates of the items. For the linear
    kernel with d < m the product with K is ``X(Xᵀg)``, in O(m d) time and without memory beyond X;
    otherwise the m×m kernel matrix is stored and a product is O(m²). A pair loss does not depend on
    a constant, so α sums to 0 and features may be centred.

    Losses with weights, groups or listed pairs, and sparse features, which are not centred, take
    the bundle method alone.
    """

    parameters: ClassVar[dict[str, Parameter]] = {
        **KERNEL_PARAMETERS,
        "tol": Real("relative duality gap to reach", above=0.0),
        "max_iter": Integer("most rounds of the solver", at_least=1),
    }
    state: ClassVar[tuple[str, ...]] = (
        *KernelMachine.state,
        "duality_gap_",
        "n_iter_",
        "converged_",
    )

    tol: float
    max_iter: int

    def _fit_machine(self, X: Any, loss: HingeSum, weights: FloatArray | None = None) -> float:
        """Learn everything but the constant; return the mean raw score of the training items.

        With `weights` the mean is weighted, and so is the default width of a Gaussian.
        """
        fit_kernel = self._fit_linear if self.kernel == "linear" else self._fit_kernel
        with np.errstate(over="ignore", invalid="ignore"):  # the solver reports what overflows
            solution, mean_score = fit_kernel(X, loss, weights)
        self.objective_ = solution.objective
        self.duality_gap_ = solution.gap
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        if not self.converged_:
            warn_not_converged(
                f"after {self.n_iter_} rounds the objective may exceed its minimum by a relative "
                f"{self.duality_gap_:.1e}: raise max_iter or tol, or lower C"
            )
        return mean_score

    def _fit_linear(
        self, X: Any, loss: HingeSum, weights: FloatArray | None
    ) -> tuple[Solution | NewtonSolution, float]:
        m = X.shape[0]
        means = X.sum(axis=0) / m
        self.dual_coef_, self.support_, self.gamma_ = None, None, None
        if loss.is_nothing():
            self.coef_ = np.zeros(X.shape[1])
            return _constant_solution(m), 0.0
        features = X if is_sparse(X) else X - means
        solution, self.coef_ = self._minimise_linear(features, loss)
        solution = self._certified(solution, loss, point_of_weights(features, self.coef_))
        if weights is not None:
            means = weights @ X / weights.sum()
        return solution, float(means @ self.coef_)

    def _certified(self, solution: Found, loss: HingeSum, point: Point) -> Found:
        """Return the solution with a gap that allows for rounding; raise if it is too large."""
        _check_finite(solution)
        objective, gap = certified(loss, point, solution.objective, solution.gap, self.tol)
        if gap > max(_LOST, self.tol) and solution.n_iter < self.max_iter:
            raise NumericFailureError("the solution is lost in rounding: lower C, or scale X down")
        checked = solution._replace(objective=objective, gap=gap, converged=gap <= self.tol)
        return cast(Found, checked)

    def _minimise_linear(
        self, features: Any, loss: HingeSum
    ) -> tuple[Solution | NewtonSolution, FloatArray]:
        """Return the solution and w, by the methods that suit the size of the problem."""
        if isinstance(loss, BundleLoss) or is_sparse(features):
            product = _linear_product(features)
            solution = self._solve(loss, product, features.shape[0], self.max_iter)
            return solution, np.asarray(solution.dual @ features)
        size = min(features.shape) if loss.n_groups <= _FEW_GROUPS else _SOME_FEATURES + 1
        tried: list[tuple[Solution | NewtonSolution, FloatArray]] = []
        left = self.max_iter
        known: Plane | None = None
        if size > _FEW_FEATURES:
            rounds = left if size > _SOME_FEATURES else min(_FIRST_ROUNDS, left)
            first = self._solve(loss, _linear_product(features), len(features), rounds)
            tried.append((first, first.dual @ features))
            left -= first.n_iter
        if left > 0 and not (tried and tried[0][0].converged):
            near = _minimise_in_span(features, loss, float(self.tol), left)
            left -= near.n_iter
            if np.isfinite(near.objective):
                tried.append((near, near.coef))
                known = Plane(near.plane_slope, near.plane_constant)
        if left > 0 and not (tried and tried[-1][0].converged):
            last = self._solve(loss, _linear_product(features), len(features), left, known)
            tried.append((last, last.dual @ features))
            left -= last.n_iter
        if not tried:
            raise NumericFailureError(_OVERFLOWED)
        best, coef = min(tried, key=lambda one: (one[0].gap, one[0].objective))
        return best._replace(n_iter=self.max_iter - left), coef

    def _fit_kernel(
        self, X: FloatArray, loss: HingeSum, weights: FloatArray | None
    ) -> tuple[Solution, float]:
        self.coef_, self.gamma_ = None, self._width(X, weights)
        self.support_ = None if self.kernel == "precomputed" else X.copy()
        if self.kernel == "precomputed":
            check_gram(X)
        if loss.is_nothing():
            self.dual_coef_ = np.zeros(len(X))
            return _constant_solution(len(X)), 0.0
        gram, given, row_means, origin = self._training_gram(X)
        solution = self._minimise_kernel(gram, loss)
        dual = self.dual_coef_ = solution.dual
        solution = self._certified(solution, loss, point_of_dual(gram, dual, given))
        if weights is not None:
            row_means = row_means + weights @ (gram - gram.mean(axis=0)) / weights.sum()
        mean = float(row_means @ dual)
        if origin is not None:
            mean += float(origin @ ((X - origin).T @ dual))
        return solution, mean

    def _training_gram(
        self, X: FloatArray
    ) -> tuple[FloatArray, float | None, FloatArray, FloatArray | None]:
        """Return the kernel matrix, its greatest value, its row means and the origin of the points.

        The greatest value is only set for a precomputed kernel, before it is centred. The row means
        give the mean score of α.
        """
        if self.kernel == "precomputed":
            gram, greatest = X.copy(), float(np.abs(X).max())
            return gram, greatest, centre_gram(gram), None
        points, origin = self._near_origin(X)
        gram = self._kernel()(points, points)
        return gram, None, gram.mean(axis=0), origin

    def _minimise_kernel(self, gram: FloatArray, loss: HingeSum) -> Solution:
        """Return the bundle method's solution; if rounding stopped it, the better of two solutions.

        The second is that of Newton's method on coordinates of the items. It computes its bounds
        anew in every round, and so loses fewer digits.
        """
        first = self._solve(loss, lambda g: gram @ g, len(gram), self.max_iter)
        left = self.max_iter - first.n_iter
        if first.converged or left == 0 or isinstance(loss, BundleLoss):
            return first
        second = None
        if len(gram) <= _SPANNED and loss.n_groups <= _FEW_GROUPS:
            second = _minimise_in_kernel_span(gram, loss, float(self.tol), left)
        rounds = first.n_iter + (second.n_iter if second else 0)
        best = second if second and second.gap < first.gap else first
        return best._replace(n_iter=rounds)

    def _solve(
        self,
        loss: HingeSum,
        product: GramProduct,
        n_examples: int,
        max_iter: int,
        known: Plane | None = None,
    ) -> Solution:
        """Run the bundle method."""
        solution = minimise(loss, product, n_examples, tol=self.tol, max_iter=max_iter, known=known)
        _check_finite(solution)
        return solution


def _minimise_in_span(
    features: FloatArray, loss: Hinges, tol: float, max_iter: int
) -> NewtonSolution:
    """Run Newton's method; w is in the span of the items, which may have fewer dimensions.

    The last of the centred items adds nothing to the span. If numbers overflow, the objective is
    NaN.
    """
    if features.shape[1] < features.shape[0]:
        return minimise_by_newton(features, loss.hinges(), tol, max_iter)
    basis = np.linalg.qr(features[:-1].T)[0]
    near = minimise_by_newton(features @ basis, loss.hinges(), tol, max_iter)
    return near._replace(coef=basis @ near.coef)


def _constant_solution(m: int) -> Solution:
    return Solution(np.zeros(m), np.zeros(m), 0.0, 0.0, 0, True)


def _minimise_in_kernel_span(
    gram: FloatArray, loss: Hinges, tol: float, max_iter: int
) -> Solution | None:
    """Run Newton's method on coordinates of the items, from the centred kernel matrix: O(m³).

    None if that overflows, or if the matrix is not positive semi-definite.
    """
    centred = gram - gram.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    values, vectors = np.linalg.eigh(centred)
    kept = values > _NOISE * len(gram) * values[-1]
    lengths = np.sqrt(values[kept])
    features = np.ascontiguousarray(vectors[:, kept] * lengths)
    near = minimise_by_newton(features, loss.hinges(), tol, max_iter)
    if not np.isfinite(near.objective):
        return None
    dual = vectors[:, kept] @ (near.coef / lengths)
    dual -= dual.mean()
    scores = gram @ dual
    objective = 0.5 * float(dual @ scores) + loss(scores)[0]
    gap = max(1.0 - near.objective * (1.0 - near.gap) / objective, 0.0)
    return Solution(dual, scores, objective, gap, near.n_iter, gap <= tol)


def _check_finite(solution: Solution | NewtonSolution) -> None:
    if not np.isfinite(solution.objective):
        raise NumericFailureError(_OVERFLOWED)


def _linear_product(features: Any) -> GramProduct:
    if features.shape[1] < features.shape[0] or is_sparse(features):
        return lambda g: np.asarray(features @ (g @ features))
    gram = features @ features.T
    return lambda g: gram @ g
