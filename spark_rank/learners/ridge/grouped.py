"""Ridge regressions with a free constant per group, for weighted, grouped and sparse examples.

With weights s and the mean of a group taken by them, the pair costs inside the groups are sums of
squares: ``Σ_{i,j in g} s_i s_j ((h_j − h_i) − (y_j − y_i))² = 2 S_g Σ_{i in g} s_i (r_i − r̄_g)²``
with S_g the weight of the group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import InvalidDataError, NumericFailureError
from spark_rank.learners.ridge.systems import is_faint, solve_by_axes, solve_ridge
from spark_rank.learners.sparse import is_sparse

IntArray = NDArray[np.int64]


def check_groups(qid: ArrayLike | None, n_examples: int) -> IntArray:
    """Return the groups of the examples, numbered from 0; one group without `qid`."""
    if qid is None:
        return np.zeros(n_examples, dtype=np.int64)
    ids = np.asarray(qid)
    if ids.shape != (n_examples,):
        raise InvalidDataError(
            f"qid must be a vector of {n_examples} ids of queries, one per row of X, but has shape "
            f"{ids.shape}"
        )
    return np.unique(ids, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True)
class Centring:
    """The weights and groups of m examples: what is subtracted from a column, and by what scaled.

    Applied to a column v it is ``D^½ (v − v̄_g)``, D the weights and v̄_g the mean of the group.
    """

    weights: FloatArray
    groups: IntArray

    def of(self, values: FloatArray) -> FloatArray:
        """Return the centred and scaled columns of a dense array."""
        roots = np.sqrt(self.weights)
        centred = values - self.means(values)[self.groups]
        return np.asarray(centred * (roots if values.ndim == 1 else roots[:, None]))

    def transposed(self, values: FloatArray) -> FloatArray:
        """Return the transpose of this map at a vector; its entries sum to 0 in each group."""
        scaled = np.sqrt(self.weights) * values
        return np.asarray(scaled - self.weights * (self._sums(scaled) / self.totals)[self.groups])

    def means(self, values: Any) -> FloatArray:
        """Return the mean of each column in each group; 0 in a group without weight."""
        sums = self._of_groups(self.weights) @ values
        dense = sums.toarray() if is_sparse(sums) else sums
        totals = self.totals
        return np.asarray(dense / (totals if dense.ndim == 1 else totals[:, None]))

    @property
    def totals(self) -> FloatArray:
        """Return the weight of each group; 1 instead of 0, since nothing is divided by it then."""
        totals = self._sums(self.weights)
        return np.where(totals > 0.0, totals, 1.0)

    def overall(self, values: Any) -> Any:
        """Return the mean of each column over all examples."""
        return self.weights @ values / self.weights.sum()

    def _sums(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self.groups, weights=values), np.float64)

    def _of_groups(self, values: FloatArray) -> Any:
        m, n_groups = len(self.groups), int(self.groups.max()) + 1
        return csr_array((values, (self.groups, np.arange(m))), shape=(n_groups, m))


@dataclass(frozen=True)
class LinearSolution:
    """The weights w, the value of the objective, and α with ``w = Σ α_i x_i``, if it was found."""

    coef: FloatArray
    objective: float
    dual: FloatArray | None = None


def solve_linear(
    X: Any, y: FloatArray, centring: Centring, ridge: float, *, primal: bool
) -> LinearSolution:
    """Minimise ``‖w‖² + Σ_g Σ_{i in g} s_i (r_i − r̄_g)² / ridge``, r = Xw − y, X dense or sparse.

    O(m d²) or, with the dual, O(m² d + m³); zeros of a sparse X cost nothing.
    """
    targets = centring.of(y)
    if not primal:
        return _solve_dual(X, y, centring, ridge)
    rows = None if is_sparse(X) else centring.of(X)
    if rows is None:
        means, totals = centring.means(X), centring.totals
        scatter = (X.T @ X.multiply(centring.weights[:, None])).toarray()
        scatter -= means.T @ (totals[:, None] * means)
        moment = X.T @ (np.sqrt(centring.weights) * targets)
        _check_not_faint(ridge, float(scatter.trace()))
    else:
        scatter, moment = rows.T @ rows, rows.T @ targets
    if rows is not None and is_faint(ridge, float(scatter.trace())):
        coef = solve_by_axes(rows, targets, ridge)[0]
    else:
        coef = solve_ridge(np.ascontiguousarray(scatter), moment, ridge)
    residuals = centring.of(X @ coef - y)
    return LinearSolution(coef, float(coef @ coef) + float(residuals @ residuals) / ridge)


def solve_kernel(
    gram: FloatArray, y: FloatArray, centring: Centring, ridge: float
) -> tuple[FloatArray, float]:
    """Return α, whose entries sum to 0 in each group, and the objective: O(m³)."""
    targets = centring.of(y)
    inner = centring.of(np.ascontiguousarray(centring.of(gram).T))
    inner = np.ascontiguousarray((inner + inner.T) / 2.0)
    solution = solve_ridge(inner, targets, ridge)
    return centring.transposed(solution), float(solution @ targets)


def _solve_dual(X: Any, y: FloatArray, centring: Centring, ridge: float) -> LinearSolution:
    if is_sparse(X):
        gram = (X @ X.T).toarray()
    else:
        points = X - centring.overall(X)  # α sums to 0: a shift changes nothing but the digits
        gram = points @ points.T
    _check_not_faint(ridge, float(gram.trace()))
    dual, objective = solve_kernel(gram, y, centring, ridge)
    return LinearSolution(np.asarray(X.T @ dual), objective, dual)


def _check_not_faint(ridge: float, trace: float) -> None:
    if is_faint(ridge, trace):
        raise NumericFailureError(
            "the ridge is lost in rounding: lower C, or centre the features and scale them down"
        )
