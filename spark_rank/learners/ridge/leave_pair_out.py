"""Exact leave-pair-out error of ridge problems with a free intercept, without refitting.

With the hat matrix A and residuals e = y − Ay, leaving out the pair B = {i, j} gives the
residuals ``(I − A_BB)⁻¹ e_B`` (the ridge held fixed). It equals refitting m(m − 1)/2 times;
Proposition 2 of the paper, which replaces the mean of the refitted scores, is an approximation.

References
----------
Cortes, Mohri, Rastogi: An Alternative Ranking Problem for Search Engines, §2.6, eq. 17.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk, ssyrk
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import NumericFailureError

_NOTHING: FloatArray = np.empty((0, 0), order="F")
_SINGLE_FROM = 64  # examples; below, single precision saves no time
_SINGLE_SHARE = 1e-5  # estimated share of the result that single precision may change
_NEARLY_SINGULAR = 1e-2  # 1 − ρ² in single precision: below, the slope in ρ is no good estimate


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

    Only the lower triangle of the symmetric I − A is read. With three examples and a positive ridge
    only rounding can make a pair's 2×2 system singular, which raises an error.
    """
    E = np.asfortranarray(residual_maker)
    return _mean_over_pairs(
        _sum_over_pairs(_NOTHING, E, E.diagonal().copy(), residuals, 0.0)[0], residuals
    )


def errors_from_basis(
    basis: FloatArray, shares: FloatArray, rest: FloatArray, residuals: FloatArray
) -> FloatArray:
    """Return that mean for every ``I − A = basis diag(share) basisᵀ + rest``, m×n and m×m.

    Each problem has a column of `shares` and a row of `residuals`; `rest` is positive
    semi-definite, or 0×0 for none. O(m² n) per problem, by one symmetric product: in single
    precision if an estimate says that this changes the result by less than a share of 1e-5 (in
    practice by 1e-8), else in double.

    The rows of ``basis diag(√share)`` over the roots of the diagonal of I − A have norms of at
    most 1. Their products are the correlations ρ of I − A (up to `rest`): numbers that cannot
    overflow, with an error of about √n·2⁻²⁴ whatever the size of the entries of I − A.
    """
    diagonals = np.square(basis) @ shares
    if rest.size:
        diagonals += rest.diagonal()[:, None]
    problems = zip(shares.T, np.ascontiguousarray(diagonals.T), residuals, strict=True)
    return np.array([_error_from_basis(basis, *problem, rest) for problem in problems])


def _error_from_basis(
    basis: FloatArray, share: FloatArray, diagonal: FloatArray, e: FloatArray, rest: FloatArray
) -> float:
    if not diagonal.min() > 0.0:
        return _mean_over_pairs(math.inf, e)
    rows = (basis, np.sqrt(share), 1.0 / np.sqrt(diagonal))
    if len(e) >= _SINGLE_FROM:
        products = _products(*rows, np.float32)
        total, slopes = _sum_over_pairs(products, rest, diagonal, e, _NEARLY_SINGULAR)
        # Σ (d + δ)² − Σ d² is near 2 Σ d δ ≤ 2 √(Σd² Σδ²), δ the slope times the error of ρ
        rounding = math.sqrt(basis.shape[1]) * 2.0**-24
        if 2.0 * rounding * math.sqrt(slopes) <= _SINGLE_SHARE * math.sqrt(total) < math.inf:
            return _mean_over_pairs(total, e)
    return _mean_over_pairs(
        _sum_over_pairs(_products(*rows, np.float64), rest, diagonal, e, 0.0)[0], e
    )


def _products(
    basis: FloatArray, roots: FloatArray, scales: FloatArray, dtype: type
) -> NDArray[Any]:
    """Return the lower triangle of the products of the scaled rows, in Fortran order."""
    rows: NDArray[Any] = np.empty(basis.shape, dtype)
    _scale_rows(basis, roots, scales, rows)
    product = ssyrk if dtype is np.float32 else dsyrk
    return np.asarray(product(1.0, rows.T, trans=1, lower=1))


@njit(cache=True)
def _scale_rows(
    basis: FloatArray, roots: FloatArray, scales: FloatArray, rows: NDArray[Any]
) -> None:
    """Write ``scales_i · basis_ik · roots_k``, rounded to the precision of `rows` at the end."""
    for i in range(basis.shape[0]):
        for k in range(basis.shape[1]):
            rows[i, k] = basis[i, k] * roots[k] * scales[i]


def _mean_over_pairs(total: float, residuals: FloatArray) -> float:
    m = len(residuals)
    if not np.isfinite(total):
        raise NumericFailureError("a left-out pair has no defined error: raise the ridge (lower C)")
    return float(total) * 2.0 / (m * (m - 1))


@njit(cache=True, error_model="numpy")
def _sum_over_pairs(
    products: NDArray[Any], E: FloatArray, diagonal: FloatArray, e: FloatArray, singular: float
) -> tuple[float, float]:
    """Sum over j < i the squared difference d of the left-out residuals (a 2×2 solve each).

    Returns Σ d² and Σ (∂d/∂ρ)², both infinite if some 1 − ρ² is not above `singular`. The
    correlation ρ of I − A is the sum of `products` and of `E` over the roots of its diagonal;
    either may be 0×0.
    """
    scales = 1.0 / np.sqrt(diagonal)
    scaled = e * scales
    alone = scaled * scales  # the residual when only i is left out
    total, slopes = 0.0, 0.0
    for j in range(len(e)):
        column = 0.0
        for i in range(j + 1, len(e)):
            rho = 0.0
            if products.shape[0] > 0:
                rho += products[i, j]
            if E.shape[0] > 0:
                rho += E[i, j] * (scales[i] * scales[j])
            determinant = (1.0 - rho) * (1.0 + rho)
            if not determinant > singular:
                return np.inf, np.inf  # the caller does better or reports it
            crossed = scales[i] * scaled[j] - scales[j] * scaled[i]
            inverse = 1.0 / determinant
            difference = (alone[j] - alone[i] + rho * crossed) * inverse
            slope = (crossed + 2.0 * rho * difference) * inverse
            column += difference * difference
            slopes += slope * slope
        total += column
    return total, slopes
