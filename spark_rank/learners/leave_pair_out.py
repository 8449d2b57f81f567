"""Exact leave-pair-out error of ridge problems with a free intercept, without refitting.

With the hat matrix A and residuals e = y − Ay, leaving out the pair B = {i, j} gives the
residuals ``(I − A_BB)⁻¹ e_B`` (the ridge held fixed). It equals refitting m(m − 1)/2 times;
Proposition 2 of the paper, which replaces the mean of the refitted scores, only comes near.

References
----------
Cortes, Mohri, Rastogi: An Alternative Ranking Problem for Search Engines, §2.6, eq. 17.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs

from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import NumericFailureError


def residual_maker_from_gram(gram: FloatArray, ridge: float) -> FloatArray:
    """Return I − A from the m×m kernel matrix, which is overwritten: O(m³).

    With P = (K + ridge·I)⁻¹ it is ``ridge (P − P11ᵀP / 1ᵀP1)``: the intercept is projected out.
    """
    gram.flat[:: len(gram) + 1] += ridge
    factor, failed = dpotrf(gram.T, lower=1, overwrite_a=1)
    if failed:
        raise NumericFailureError("the ridge system is not positive definite: lower C")
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    lower = np.tril(inverse)
    inverse = lower + np.tril(lower, -1).T
    sums = inverse.sum(axis=0)
    inverse -= np.outer(sums, sums / sums.sum())
    inverse *= ridge
    return np.asarray(inverse)


def residual_maker_from_features(X: FloatArray, ridge: float) -> FloatArray:
    """Return I − A for the linear kernel from the m×d features: O(m² d + d³)."""
    centred = X - X.mean(axis=0)
    scatter = centred.T @ centred
    scatter.flat[:: len(scatter) + 1] += ridge
    factor, failed = dpotrf(scatter.T, lower=1, overwrite_a=1)
    if failed:
        raise NumericFailureError("the ridge system is not positive definite: lower C")
    half, _ = dtrtrs(factor, centred.T, lower=1)
    return centring(len(X)) - half.T @ half


def centring(m: int) -> FloatArray:
    """Return H = I − 11ᵀ/m."""
    return np.eye(m) - 1.0 / m


def error(residual_maker: FloatArray, residuals: FloatArray) -> float:
    """Return the mean over ordered pairs of (e_j − e_i)², both left out: O(m²), no m² temporary.

    Of the symmetric I − A only the lower triangle is read. With three examples and a positive
    ridge no pair's 2×2 system is singular but by rounding, which is an error.
    """
    m = len(residuals)
    total = _sum_over_pairs(np.asfortranarray(residual_maker), residuals)
    if not np.isfinite(total):
        raise NumericFailureError("a left-out pair has no defined error: raise the ridge (lower C)")
    return float(total) * 2.0 / (m * (m - 1))


@njit(cache=True)
def _sum_over_pairs(E: FloatArray, e: FloatArray) -> float:
    """Sum over j < i of the squared difference of the left-out residuals (a 2×2 solve each)."""
    total = 0.0
    for j in range(len(e)):
        column = 0.0
        for i in range(j + 1, len(e)):
            determinant = E[i, i] * E[j, j] - E[i, j] * E[i, j]
            difference = (E[i, i] + E[i, j]) * e[j] - (E[j, j] + E[i, j]) * e[i]
            # a division by zero gives an infinity that the caller reports
            column += (difference / determinant) ** 2 if determinant > 0.0 else np.inf
        total += column
    return total
