"""The on-line form of MPRank: rounds of coordinate steps, and a stream of single examples.

References
----------
Cortes, Mohri, Rastogi: An Alternative Ranking Problem for Search Engines, §2.5. With the ridge
m/(2C) the paper's update ``α_i += η [2(ỹ_i − Σ_j α_j K̃_ij) − (m/C) α_i]`` is
``α_i += 2η (ỹ_i − Σ_j α_j K̃_ij − ridge α_i)``; the exact step is ``2η = 1/(K̃_ii + ridge)``.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import NumericFailureError
from spark_rank.learners.kernels import Kernel


def solve(
    centred: FloatArray, y: FloatArray, ridge: float, tol: float, max_rounds: int, eta: float | None
) -> tuple[FloatArray, FloatArray]:
    """Return α and the cost F after each round, from the centred kernel matrix: O(m²) a round.

    Rounds end when the cost changes by less than the share `tol`. A fixed step that is too
    large diverges: that is an error.
    """
    steps = np.full(len(y), 2.0 * eta) if eta is not None else 1.0 / (centred.diagonal() + ridge)
    alpha, scores = np.zeros(len(y)), np.zeros(len(y))
    costs: list[float] = []
    previous = float(y @ y) / ridge
    start = previous
    for _ in range(max_rounds):
        _one_round(centred, y, ridge, steps, alpha, scores)
        residuals = scores - y
        with np.errstate(over="ignore", invalid="ignore"):
            cost = float(alpha @ scores + residuals @ residuals / ridge)
        if not np.isfinite(cost) or (eta is not None and cost > 1e6 * max(start, 1.0)):
            raise NumericFailureError(
                "the on-line solver diverged in rounding: lower C, or scale the features down"
                if eta is None
                else f"the on-line solver diverged with eta={eta}: lower it, or leave it out"
            )
        costs.append(cost)
        if abs(previous - cost) <= tol * abs(previous):
            break
        previous = cost
    return alpha, np.array(costs)


@njit(cache=True)
def _one_round(
    K: FloatArray,
    y: FloatArray,
    ridge: float,
    steps: FloatArray,
    alpha: FloatArray,
    scores: FloatArray,
) -> None:
    for i in range(len(y)):
        change = steps[i] * (y[i] - scores[i] - ridge * alpha[i])
        alpha[i] += change
        for j in range(len(y)):
            scores[j] += change * K[i, j]


class Stream:
    """Examples that arrive one by one; the i-th costs i kernel values and O(i).

    The sums for centring (row sums of the kernel matrix and its total) are updated, so no m×m
    matrix is stored: ``K̃_ij = K_ij − (R_i + R_j)/m + S/m²``.
    """

    def __init__(self, kernel: Kernel, origin: FloatArray | None, width: int) -> None:
        self._kernel = kernel
        self.origin = origin
        self.greatest = 0.0  # of the kernel values so far
        self._rows = np.empty((8, width))
        self._vectors = np.empty((4, 8))  # α, row sums, targets, uncentred scores
        self._size = 0
        self._total = 0.0

    def __len__(self) -> int:
        return self._size

    @property
    def width(self) -> int:
        """Return the number of features of an example."""
        return self._rows.shape[1]

    def branch(self) -> Stream:
        """Return a stream that continues this one; this one stays unchanged, in case of an error.

        Rows are shared: neither stream reads rows that the other writes behind its end.
        """
        branch = copy(self)
        branch._vectors = self._vectors.copy()
        return branch

    def learn(self, row: FloatArray, target: float, ridge: float) -> None:
        """Add one example and do its coordinate step."""
        self._make_room()
        m = self._size + 1
        self._rows[m - 1] = row
        points = self._rows[:m] if self.origin is None else self._rows[:m] - self.origin
        values = self._kernel(points[-1:], points)[0]
        self.greatest = max(self.greatest, float(values[-1]))
        alpha, sums, targets, scores = (vector[:m] for vector in self._vectors)
        alpha[-1], targets[-1] = 0.0, target
        sums[:-1] += values[:-1]
        sums[-1] = values.sum()
        scores[-1] = values @ alpha
        self._total += 2.0 * sums[-1] - values[-1]
        centred_score = (
            scores[-1] - (sums[-1] * alpha.sum() + alpha @ sums) / m
            + self._total * alpha.sum() / m**2
        )  # fmt: skip
        own = values[-1] - 2.0 * sums[-1] / m + self._total / m**2
        change = (target - targets.mean() - centred_score) / (own + ridge)
        alpha[-1] = change
        scores += change * values
        self._size = m

    def points(self) -> FloatArray:
        """Return the examples so far."""
        return self._rows[: self._size].copy()

    def targets(self) -> FloatArray:
        """Return the targets of the examples so far."""
        return self._vectors[2, : self._size].copy()

    def dual(self) -> FloatArray:
        """Return the coefficients of the uncentred kernel; they sum to 0."""
        alpha = self._vectors[0, : self._size]
        return np.asarray(alpha - alpha.mean())

    def intercept(self) -> float:
        """Return the constant that puts the mean score at the mean target."""
        sums, targets = self._vectors[1, : self._size], self._vectors[2, : self._size]
        return float(targets.mean() - self.dual() @ sums / self._size)

    def objective(self, ridge: float) -> float:
        """Return F of the current coefficients: O(m)."""
        alpha, sums, targets, scores = (vector[: self._size] for vector in self._vectors)
        # scores under the coefficients that sum to 0, then centred
        fitted = scores - alpha.mean() * sums
        fitted = fitted - fitted.mean()
        residuals = fitted - (targets - targets.mean())
        return float(self.dual() @ fitted + residuals @ residuals / ridge)

    def _make_room(self) -> None:
        if self._size < len(self._rows):
            return
        self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._vectors = np.concatenate([self._vectors, np.empty_like(self._vectors)], axis=1)
