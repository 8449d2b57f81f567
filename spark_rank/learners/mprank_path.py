"""All of a grid of C's from one factorisation: solutions, objectives, leave-pair-out errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigh, svd

from spark_rank.learners import leave_pair_out
from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import InvalidDataError, NumericFailureError

if TYPE_CHECKING:
    from spark_rank.learners.mprank import MPRank


@dataclass(frozen=True)
class MPRankPath:
    """A grid of C's with the objective, leave-pair-out error and fitted model of each."""

    Cs: FloatArray
    objectives: FloatArray
    leave_pair_out: FloatArray
    models: tuple[MPRank, ...]

    @property
    def best(self) -> MPRank:
        """Return the model of least leave-pair-out error; of equals, the first."""
        return self.models[int(np.argmin(self.leave_pair_out))]


@dataclass(frozen=True)
class PathSolutions:
    """What `trace_path` finds, one row or entry per ridge."""

    dual: FloatArray
    intercepts: FloatArray
    objectives: FloatArray
    errors: FloatArray


def trace_path(
    matrix: FloatArray, y: FloatArray, ridges: FloatArray, *, primal: bool
) -> PathSolutions:
    """Solve for every ridge from one decomposition.

    `matrix` is the m×d feature matrix (``primal``: thin SVD, O(m d²)) or the m×m kernel matrix
    (eigendecomposition of HKH, O(m³)). Each ridge then costs O(m² min(m, d)).
    """
    if len(y) < 3:
        raise InvalidDataError("leave-pair-out needs at least three examples")
    basis, values, row_means = _decompose(matrix, primal=primal)
    targets = y - y.mean()
    projected = basis.T @ targets
    outside = targets - basis @ projected
    # of what lies along a basis vector I − A leaves this share, one column a ridge
    shares = ridges / (values[:, None] + ridges)
    residuals = (basis @ (projected[:, None] * shares) + outside[:, None]).T
    residuals = residuals - residuals.mean(axis=1, keepdims=True)
    dual = residuals / ridges[:, None]
    rest = _outside(basis)
    errors = leave_pair_out.errors_from_basis(basis, shares, rest, residuals)
    return PathSolutions(dual, y.mean() - dual @ row_means, dual @ targets, errors)


def _decompose(matrix: FloatArray, *, primal: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return eigenvectors and eigenvalues of the centred kernel matrix, and what centring took.

    The vectors are centred, to have nothing of the constant one that rounding mixes in.
    """
    if not np.isfinite(matrix.sum()):
        raise NumericFailureError("the kernel matrix overflowed: scale the features down")
    if primal:
        mean = matrix.mean(axis=0)
        centred = matrix - mean
        vectors, singular, _ = svd(centred, full_matrices=False, check_finite=False)
        values, row_means = singular**2, centred @ mean
    else:
        row_means = matrix.mean(axis=1)
        centred = matrix - row_means[:, None] - row_means[None, :] + row_means.mean()
        values, vectors = eigh(centred, check_finite=False, overwrite_a=True, driver="evd")
        values = np.maximum(values, 0.0)
    return np.subtract(vectors, vectors.mean(axis=0), order="C"), values, row_means


def _outside(basis: FloatArray) -> FloatArray:
    """Return the projection on what is neither constant nor in the basis, 0×0 if there is none."""
    m = len(basis)
    dimension = m - 1 - np.square(basis).sum()  # a whole number but for rounding
    if dimension < 0.5:
        return np.empty((0, 0), order="F")
    return np.asfortranarray(leave_pair_out.centring(m) - basis @ basis.T)
