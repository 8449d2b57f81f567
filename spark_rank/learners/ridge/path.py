"""Solves a whole grid of C from one factorisation, with objectives and leave-pair-out errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigh

from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import InvalidDataError, NumericFailureError
from spark_rank.learners.kernel_machine import centre_gram, mean_target
from spark_rank.learners.ridge import leave_pair_out
from spark_rank.learners.ridge.systems import Axes

if TYPE_CHECKING:
    from spark_rank.learners.mprank import MPRank

_EPSILON = float(np.finfo(np.float64).eps)
_MOST_NOISE = 1e-3  # greatest relative rounding error of a divisor, which leaves three digits


@dataclass(frozen=True)
class MPRankPath:
    """A grid of C's with the objective, leave-pair-out error and fitted model of each."""

    Cs: FloatArray
    objectives: FloatArray
    leave_pair_out: FloatArray
    models: tuple[MPRank, ...]

    @property
    def best(self) -> MPRank:
        """Return the model of least leave-pair-out error; if several are equal, the first."""
        return self.models[int(np.argmin(self.leave_pair_out))]


@dataclass(frozen=True)
class PathSolutions:
    """The results of `trace_path`, one row or entry per ridge; weights only from features."""

    dual: FloatArray
    intercepts: FloatArray
    objectives: FloatArray
    errors: FloatArray
    weights: FloatArray | None


def trace_path(
    matrix: FloatArray, y: FloatArray, ridges: FloatArray, *, primal: bool
) -> PathSolutions:
    """Solve for every ridge from one decomposition.

    `matrix` is the m×d feature matrix (``primal``: thin SVD, O(m d²)) or the m×m kernel matrix
    (eigendecomposition of HKH, O(m³)). Each ridge then costs O(m² min(m, d)).
    """
    if len(y) < 3:
        raise InvalidDataError("leave-pair-out needs at least three examples")
    basis, values, row_means, directions = _decompose(matrix, primal=primal)
    _check_ridges(ridges, values, basis, np.abs(matrix).max() if not primal else 0.0)
    mean = mean_target(y)
    targets = y - mean
    projected = basis.T @ targets
    rest = _outside(basis)
    # if the basis spans everything, the part outside is only rounding
    outside = targets - basis @ projected if rest.size else np.zeros(len(y))
    # the share of each basis vector that I − A leaves, one column per ridge
    shares = ridges / (values[:, None] + ridges)
    residuals = (basis @ (projected[:, None] * shares) + outside[:, None]).T
    residuals = residuals - residuals.mean(axis=1, keepdims=True)
    dual = residuals / ridges[:, None]
    errors = leave_pair_out.errors_from_basis(basis, shares, rest, residuals)
    weights, means = None, dual @ row_means
    if directions is not None:
        # not from the dual, whose terms cancel in the weights if the ridge is very small
        along = (np.sqrt(values) * projected)[:, None] / (values[:, None] + ridges)
        weights = (directions @ along).T
        means = weights @ matrix.mean(axis=0)
    return PathSolutions(dual, mean - means, dual @ targets, errors, weights)


def _decompose(
    matrix: FloatArray, *, primal: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None]:
    """Return eigenvectors and eigenvalues of the centred kernel matrix, row means, directions.

    The row means are those before centring; directions are only returned for features. The
    eigenvectors are centred, to remove the constant vector that rounding mixes in.
    """
    if not np.isfinite(matrix.sum()):
        raise NumericFailureError("the kernel matrix overflowed: scale the features down")
    directions = None
    if primal:
        axes = Axes.of(matrix - matrix.mean(axis=0))
        vectors, values, directions = axes.left, axes.lengths**2, axes.right
        row_means = np.zeros(len(matrix))
    else:
        centred = matrix.copy()
        row_means = centre_gram(centred)
        values, vectors = eigh(centred, check_finite=False, overwrite_a=True, driver="evd")
        values = np.maximum(values, 0.0)
    basis = np.subtract(vectors, vectors.mean(axis=0), order="C")
    return basis, values, row_means, directions


def _check_ridges(
    ridges: FloatArray, values: FloatArray, basis: FloatArray, greatest: float
) -> None:
    """Raise `NumericFailureError` if rounding of kernel values is not small against a ridge.

    Kernel values up to `greatest` (0 for features) have errors in their last digits, and the
    eigenvalues have errors √m times as large.
    """
    counted = np.square(basis).sum(axis=0) > 0.5  # without the constant vector
    noise = 4.0 * _EPSILON * greatest * len(basis) ** 0.5
    smallest = float(values[counted].min(initial=np.inf)) + float(ridges.min())
    if noise > _MOST_NOISE * smallest:
        raise NumericFailureError(
            "the ridge is lost in the rounding of the kernel: lower C, or centre and scale down "
            "the features"
        )


def _outside(basis: FloatArray) -> FloatArray:
    """Return the projection on the space outside the constant vector and the basis, or 0×0."""
    m = len(basis)
    dimension = m - 1 - np.square(basis).sum()  # a whole number, except for rounding
    if dimension < 0.5:
        return np.empty((0, 0), order="F")
    return np.asfortranarray(leave_pair_out.centring(m) - basis @ basis.T)
