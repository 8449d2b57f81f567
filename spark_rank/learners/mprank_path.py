"""All of a grid of C's from one factorisation: solutions, objectives, leave-pair-out errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigh, svd
from scipy.linalg.blas import dsyrk

from spark_rank.learners import leave_pair_out
from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import InvalidDataError

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
    vectors, values, row_means = _decompose(matrix, primal=primal)
    targets = y - y.mean()
    projected = vectors.T @ targets
    outside = targets - vectors @ projected
    centring = leave_pair_out.centring(len(y))
    rows, intercepts, objectives, errors = [], [], [], []
    for ridge in ridges:
        alpha = vectors @ (projected / (values + ridge)) + outside / ridge
        alpha -= alpha.mean()
        half = vectors * np.sqrt(values / (values + ridge))
        # H − half·halfᵀ, the lower triangle only
        residual_maker = dsyrk(-1.0, half, 1.0, centring.copy(order="F"), lower=1, overwrite_c=1)
        rows.append(alpha)
        intercepts.append(y.mean() - row_means @ alpha)
        objectives.append(alpha @ targets)
        errors.append(leave_pair_out.error(residual_maker, ridge * alpha))
    return PathSolutions(
        np.array(rows), np.array(intercepts), np.array(objectives), np.array(errors)
    )


def _decompose(matrix: FloatArray, *, primal: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return eigenvectors and eigenvalues of the centred kernel matrix, and what centring took."""
    if primal:
        mean = matrix.mean(axis=0)
        centred = matrix - mean
        vectors, singular, _ = svd(centred, full_matrices=False, check_finite=False)
        vectors = np.asfortranarray(vectors)
        return vectors, singular**2, centred @ mean
    row_means = matrix.mean(axis=1)
    centred = matrix - row_means[:, None] - row_means[None, :] + row_means.mean()
    values, vectors = eigh(centred, check_finite=False, overwrite_a=True, driver="evd")
    return vectors, np.maximum(values, 0.0), row_means
