"""The best fixed ranking rule in hindsight, by the convex surrogate of the rank loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, kron, vstack

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class FixedRule(NamedTuple):
    """A rule (w, b) with its surrogate loss, and a lower bound of the least surrogate loss.

    The bound is the value of a feasible point of the dual programme: it needs no trust in the
    solver.
    """

    coef: FloatArray
    thresholds: FloatArray
    loss: float
    lower: float

    @property
    def gap(self) -> float:
        """Return how far the loss may be from the least one."""
        return self.loss - self.lower


def sides(ranks: IntArray, n_ranks: int) -> FloatArray:
    """Return y_r for every example and threshold: −1 if y ≤ r, else +1."""
    return np.where(ranks[:, None] <= np.arange(1, n_ranks), -1.0, 1.0)


def surrogate_loss(
    X: FloatArray, ranks: IntArray, coef: FloatArray, thresholds: FloatArray
) -> float:
    """Return ``Σ_t Σ_r max(0, 1 − y_r^t (w·x_t − b_r))``, which is at least the rank loss."""
    margins = sides(ranks, len(thresholds) + 1) * ((X @ coef)[:, None] - thresholds)
    return float(np.maximum(0.0, 1.0 - margins).sum())


def best_fixed_rule(X: FloatArray, ranks: IntArray, n_ranks: int) -> FixedRule:
    """Return the rule of least surrogate loss on a sequence, by the dual linear programme.

    The dual is ``max Σ α, 0 ≤ α ≤ 1, Σ α_tr y_r^t x_t = 0, Σ_t α_tr y_r^t = 0``: T(k−1) variables
    and d + k − 1 equations. Its multipliers are w and b.
    """
    y = sides(ranks, n_ranks)
    T, k = y.shape
    of_weights = kron(csr_array(X.T), np.ones((1, k)), format="csr") * y.reshape(1, -1)
    of_thresholds = hstack([csr_array(np.eye(k) * y[t]) for t in range(T)], format="csr")
    equations = vstack([csr_array(of_weights), of_thresholds], format="csr")
    found = linprog(
        -np.ones(T * k), A_eq=equations, b_eq=np.zeros(equations.shape[0]), bounds=(0.0, 1.0),
        method="highs",
    )  # fmt: skip
    rule = -np.asarray(found.eqlin.marginals)
    coef, thresholds = rule[: X.shape[1]], np.sort(-rule[X.shape[1] :])
    loss = surrogate_loss(X, ranks, coef, thresholds)
    lower = _lower_bound(equations, np.clip(found.x, 0.0, 1.0), coef, thresholds)
    return FixedRule(coef, thresholds, loss, min(lower, loss))


def _lower_bound(
    equations: csr_array, dual: FloatArray, coef: FloatArray, thresholds: FloatArray
) -> float:
    """Return Σ α, less what the solver's violation of the equations may add to it.

    With a violation v the Lagrangian at the least rule u is Σ α − v·u; u is taken to be at most
    ten times as long as the rule that was found.
    """
    violation = equations @ dual
    length = 10.0 * float(np.sqrt(coef @ coef + thresholds @ thresholds))
    return float(dual.sum()) - float(np.sqrt(violation @ violation)) * length
