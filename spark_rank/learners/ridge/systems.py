"""Solvers of ridge systems: Cholesky, conjugate gradients for many examples, and the ridge from C.

References
----------
Frangella, Tropp, Udell: Randomized Nyström Preconditioning, SIAM J. Matrix Anal. Appl. 44, 2023.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.linalg import svd
from scipy.linalg.blas import dsymv, dtrsm
from scipy.linalg.lapack import dposv, dpotrf, dpotrs

from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import NumericFailureError

Sizes = TypeVar("Sizes", float, FloatArray)

_EPSILON = float(np.finfo(np.float64).eps)
_FAINT = 1e-9  # share of a trace below which the digits of the ridge are lost
# with fewer examples Cholesky is faster
_MANY = 320
# of the preconditioner; the jitter allows rows that are nearly combinations of others
_LANDMARKS = 32
_JITTER = 1e-8
# residual at the end, relative to the right side: as precise as Cholesky
_TOLERANCE = 1e-12
# this many take as long as Cholesky on the smallest system, and a fifth of it on the largest
_MOST_STEPS = 40


def ridge_of(C: float, ridge: str, growth: float, m: Sizes) -> Sizes:
    """Return the ridge 1/C′ of a problem with m examples, or of many problems."""
    return (0.5 * m / C if ridge == "per-example" else 1.0 / C) + growth * m


def is_faint(ridge: float, trace: float) -> bool:
    """Tell whether a ridge is so small that a system of this trace loses most of its digits."""
    return ridge < _FAINT * trace < math.inf


class Axes(NamedTuple):
    """Orthonormal `left` and `right` and `lengths` with ``X = left diag(lengths) rightᵀ``."""

    left: FloatArray
    lengths: FloatArray
    right: FloatArray

    @classmethod
    def of(cls, centred: FloatArray) -> Axes:
        """Decompose centred features, without directions of pure rounding: O(m d min(m, d))."""
        left, lengths, right = svd(centred, full_matrices=False, check_finite=False)
        kept = lengths > _EPSILON * max(centred.shape) * lengths.max(initial=0.0)
        return cls(left[:, kept], lengths[kept], right[kept].T)


def solve_by_axes(
    centred: FloatArray, targets: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Return w and α of centred features and targets, for a ridge too small for XᵀX.

    If the ridge vanishes, w is the shortest of the best solutions.
    """
    axes = Axes.of(centred)
    within = axes.left.T @ targets
    shrunk = within / (np.square(axes.lengths) + ridge)
    dual = axes.left @ shrunk
    if len(axes.lengths) < len(targets) - 1:
        dual += (targets - axes.left @ within) / ridge
    return axes.right @ (axes.lengths * shrunk), dual - dual.mean()


def solve_ridge(matrix: FloatArray, right: FloatArray, ridge: float) -> FloatArray:
    """Return (matrix + ridge·I)⁻¹ right by one Cholesky; `matrix` is overwritten.

    Only its upper triangle is read.
    """
    diagonal = matrix.reshape(-1, order="A")[:: len(matrix) + 1]
    diagonal += ridge
    _check_finite(matrix)
    # the transpose of a symmetric C-ordered matrix is Fortran-ordered without a copy; LAPACK
    # factorises a lower triangle in two thirds of the time
    _, solution, info = dposv(matrix.T, right, lower=1, overwrite_a=1)
    if info != 0:
        raise NumericFailureError(
            "the ridge system is not positive definite: lower C, or scale the features down"
        )
    return np.asarray(solution)


def solve_centred(gram: FloatArray, y: FloatArray, ridge: float) -> tuple[FloatArray, float]:
    """Return α and b with ``(gram + ridge·I) α = y − b·1`` and ``Σ α = 0``.

    This equals centring the kernel matrix, without passes over it. Only its upper triangle is
    read, and it is overwritten. A `y` of mean 0 keeps the most digits. O(m³); from a few hundred
    examples on O(m²) per step of conjugate gradients, about a dozen steps if the ridge grows with
    m.
    """
    if len(y) >= _MANY:
        _check_finite(gram)
        solution = _solve_by_steps(gram, y, ridge)
        if solution is not None:
            return solution
    if is_faint(ridge, gram.trace()):
        gram += gram.trace() / len(y) ** 2  # a constant changes nothing, because α sums to 0
    right = np.empty((len(y), 2), order="F")
    right[:, 0], right[:, 1] = y, 1.0
    solutions = solve_ridge(gram, right, ridge)
    free, ones = solutions.sum(axis=0)
    shift = float(free / ones)
    return solutions[:, 0] - shift * solutions[:, 1], shift


def solve_weighted(
    gram: FloatArray, y: FloatArray, weights: FloatArray, ridge: float
) -> tuple[FloatArray, float]:
    """Return α and b with ``(gram + ridge·D⁻¹) α = y − b·1`` and ``Σ α = 0``, D the weights.

    α_i is 0 if the weight is 0. Only the upper triangle of `gram` is read, and it is overwritten.
    O(m³).
    """
    roots = np.sqrt(weights)
    if is_faint(ridge, gram.trace()):
        gram += gram.trace() / len(y) ** 2  # a constant changes nothing, because α sums to 0
    gram *= roots
    gram *= roots[:, None]
    right = np.asfortranarray(np.column_stack([roots * y, roots]))
    solutions = solve_ridge(gram, right, ridge)
    free, ones = roots @ solutions
    shift = float(free / ones)
    return roots * (solutions[:, 0] - shift * solutions[:, 1]), shift


def _check_finite(matrix: FloatArray) -> None:
    # the diagonal bounds every entry of a kernel matrix; Cholesky does not fail on infinities
    if not math.isfinite(matrix.trace()):
        raise NumericFailureError("the kernel matrix overflowed: scale the features down")


def _solve_by_steps(
    gram: FloatArray, y: FloatArray, ridge: float
) -> tuple[FloatArray, float] | None:
    """Return `solve_centred`'s result by conjugate gradients; None if they take too long.

    They run in the space of Σ α = 0. The preconditioner is the part of the kernel's space that the
    first examples span, which has the greatest eigenvalues, including those of a linear part.
    """
    preconditioner = _Nystroem.of(gram, ridge)
    residual = y - y.mean()
    enough = (_TOLERANCE * np.linalg.norm(residual)) ** 2
    alpha = np.zeros(len(y))
    if preconditioner is None or not residual.any():
        return None
    step = preconditioner.solve(residual)
    size = residual @ step
    for _ in range(_MOST_STEPS):
        image = dsymv(1.0, gram.T, step, lower=1)
        image += ridge * step
        image -= image.mean()
        length = size / (step @ image)
        alpha += length * step
        residual -= length * image
        if residual @ residual <= enough:
            alpha -= alpha.mean()
            return alpha, float(y.mean() - dsymv(1.0, gram.T, alpha, lower=1).mean())
        ahead = preconditioner.solve(residual)
        size, before = residual @ ahead, size
        step *= size / before
        step += ahead
    return None


class _Nystroem:
    """``ridge·I + F Fᵀ``, where F Fᵀ is the centred kernel matrix projected on some landmarks."""

    def __init__(self, features: FloatArray, factor: FloatArray, ridge: float) -> None:
        self.features = features
        self.factor = factor
        self.ridge = ridge

    @classmethod
    def of(cls, gram: FloatArray, ridge: float) -> _Nystroem | None:
        """Take the first rows as landmarks; None if their matrix is not positive definite."""
        columns = gram[:_LANDMARKS].T.copy()
        corner = np.tril(columns[:_LANDMARKS])
        columns[:_LANDMARKS] = corner + np.tril(corner, -1).T
        among = columns[:_LANDMARKS].copy()
        among.flat[:: _LANDMARKS + 1] += _JITTER * among.trace()
        root, info = dpotrf(among, lower=0)
        if info != 0:
            return None
        features = dtrsm(1.0, root, columns, side=1)
        features -= features.mean(axis=0)
        inner = features.T @ features
        inner.flat[:: _LANDMARKS + 1] += ridge
        factor, info = dpotrf(inner, lower=1)
        return cls(features, factor, ridge) if info == 0 else None

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the inverse times `right`, in O(m · landmarks)."""
        within, _ = dpotrs(self.factor, right @ self.features, lower=1)
        return np.asarray((right - self.features @ within) / self.ridge)
