"""Kernels by name, and sums of them: ``linear``, ``rbf``, ``poly``, ``linear+rbf``, ..."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import ddot
from scipy.spatial.distance import cdist

from spark_rank.learners.base import FloatArray
from spark_rank.learners.compiled.gaussian import (
    gaussian_sums,
    gaussian_values,
    half_norms,
    upper_gaussian,
)
from spark_rank.learners.errors import NumericFailureError

_SMALLEST = sys.float_info.min  # the reciprocal of a smaller number overflows
# γ‖x‖² from which Gaussians lose a digit in 1e12
_FAR = 4096.0
_ROWS_AT_ONCE = 256

KERNELS = ("linear", "rbf", "poly", "linear+rbf", "precomputed")


class _Points(NamedTuple):
    """Rows, half of their squared norms, and the greatest of these."""

    rows: FloatArray
    halves: FloatArray
    greatest: float

    @classmethod
    def of(cls, A: FloatArray) -> _Points:
        rows, halves = _plain(A), np.empty(len(A))
        return cls(rows, halves, half_norms(rows, halves))

    def is_far(self, gamma: float) -> bool:
        """Tell whether norms are so large that distances of about the width lose their digits."""
        return _FAR < 2.0 * gamma * self.greatest < math.inf


@dataclass(frozen=True)
class Kernel:
    """A positive semi-definite function of two items, ready to be evaluated in blocks.

    ``linear``  a·b;  ``rbf``  w·exp(−γ‖a − b‖²);  ``poly``  (γ a·b + coef0)^degree;
    ``linear+rbf``  their sum. Cost O(m n d) by one matrix product for m×n values.

    If dual coefficients sum to 0, shifting all points changes the sum of a linear part only by a
    constant. `origin` is the shift with which values keep their digits.
    """

    name: str
    gamma: float = 1.0
    degree: int = 2
    coef0: float = 1.0
    rbf_weight: float = 1.0

    def origin(self, X: FloatArray) -> FloatArray | None:
        """Return the point to subtract from all points; None for kernels that need no shift."""
        return mean_row(X) if self.name in ("linear", "linear+rbf") else None

    def __call__(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Return the m×n matrix of kernel values between the rows of A and of B."""
        if self._is_gaussian:
            left, right = self._near(A, B)
            if right.is_far(self.gamma):
                return self._far_values(A, B)
            products = left.rows @ right.rows.T
            gaussian_values(products, left.halves, right.halves, *self._constants())
            return products
        products = A @ B.T
        if self.name == "linear":
            return products
        return (self.gamma * products + self.coef0) ** self.degree

    def upper(self, X: FloatArray) -> FloatArray:
        """Return the kernel matrix of the rows of X; values below its diagonal are undefined.

        For Gaussians this saves half of the products and exponentials.
        """
        if not self._is_gaussian:
            return self(X, X)
        _, points = self._near(X, X)
        if points.is_far(self.gamma):
            return self._far_values(X, X)
        gram = np.empty((len(X), len(X)))
        upper_gaussian(points.rows, points.halves, *self._constants(), gram)
        return gram

    def greatest(self, X: FloatArray) -> float:
        """Return the greatest kernel value of rows of X, which is on the diagonal. O(m d)."""
        norm = 2.0 * half_norms(_plain(X), np.empty(len(X)))
        if self.name == "poly":
            return float((self.gamma * norm + self.coef0) ** self.degree)
        linear = norm if self.name != "rbf" else 0.0
        return linear + (self.rbf_weight if self._is_gaussian else 0.0)

    def balanced_sums(self, A: FloatArray, B: FloatArray, alpha: FloatArray) -> FloatArray:
        """Return ``Σ_j α_j K(a, b_j)`` for every row a of A, for α that sum to 0.

        The linear part is ``w·a`` with ``w = Σ α_j b_j``, from differences of the b.
        """
        if self.name != "linear+rbf":
            return self._sums(A, B, alpha)
        gaussians = replace(self, name="rbf")._sums(A, B, alpha)
        return np.asarray(gaussians + A @ (alpha @ (B - mean_row(B))))

    def _sums(self, A: FloatArray, B: FloatArray, alpha: FloatArray) -> FloatArray:
        if not self._is_gaussian:
            return np.asarray(self(A, B) @ alpha)
        left, right = self._near(A, B)
        sums = np.empty(len(A))
        if right.is_far(self.gamma):
            for start in range(0, len(A), _ROWS_AT_ONCE):
                rows = slice(start, start + _ROWS_AT_ONCE)
                sums[rows] = self._far_values(A[rows], B) @ alpha
            return sums
        gaussian_sums(
            left.rows, right.rows, left.halves, right.halves, *self._constants(), _plain(alpha),
            sums,
        )  # fmt: skip
        return sums

    def _near(self, A: FloatArray, B: FloatArray) -> tuple[_Points, _Points]:
        """Return the rows of A and B, both shifted by one vector so that distances keep digits.

        ``a·b − ½‖a‖² − ½‖b‖²`` loses digits if the norms are much greater than the distances. Rows
        near the origin stay as they are, and so do rows of a sum with the linear kernel, whose
        values a shift would change.
        """
        right = _Points.of(B)
        if self.name == "rbf" and right.is_far(self.gamma):
            origin = mean_row(B)
            A, B = (B - origin,) * 2 if A is B else (A - origin, B - origin)
            right = _Points.of(B)
        return right if A is B else _Points.of(A), right

    def _far_values(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Return Gaussian values from distances, where dot products would lose their digits."""
        if self.name == "linear+rbf":
            return np.asarray(replace(self, name="rbf")(A, B) + A @ B.T)
        values = cdist(A, B, "sqeuclidean")
        values *= -self.gamma
        np.exp(values, out=values)
        values *= self.rbf_weight
        return np.asarray(values)

    @property
    def _is_gaussian(self) -> bool:
        return self.name in ("rbf", "linear+rbf")

    def _constants(self) -> tuple[float, float, bool]:
        """Return the arguments of compiled Gaussians, as floats, so that one type is compiled."""
        return 2.0 * self.gamma, float(self.rbf_weight), self.name == "linear+rbf"


def _plain(values: FloatArray) -> FloatArray:
    """Return a contiguous, read-only view or copy, so that one array type is compiled."""
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


def mean_row(X: FloatArray) -> FloatArray:
    """Return the mean of the rows; if all rows are equal, exactly that row."""
    first = X[0]
    return np.asarray(first + np.add.reduce(X - first, axis=0) / len(X))


def scale_gamma(X: FloatArray, weights: FloatArray | None = None) -> float:
    """Return 1 / (sum of the variances of the columns of X): the default width of a Gaussian.

    With `weights` a row counts as often as its weight says.

    The mean squared distance of two rows is about twice that sum, so the Gaussian of a typical
    pair is about e⁻², whatever the means of the columns. Without columns, or if no column varies,
    the width is 1.
    """
    if X.size == 0:
        return 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        if weights is None:
            total: float = len(X)
            away = X - X[0]  # exactly 0 where a column does not vary
            away -= np.add.reduce(away, axis=0) / total
        else:
            total = float(weights.sum())
            away = X - X[int(weights.argmax())]
            away -= weights @ away / total
            away *= np.sqrt(weights)[:, None]
    flat = away.reshape(-1)
    spread = float(ddot(flat, flat)) / total  # half the time of X.var()
    if not math.isfinite(spread):
        raise NumericFailureError("the variance of X overflowed: scale the features down")
    return 1.0 / spread if spread >= _SMALLEST else 1.0
