"""Kernels by name, and sums of them: ``linear``, ``rbf``, ``poly``, ``linear+rbf``, ..."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import ddot

from spark_rank.learners._gaussian import (
    gaussian_sums,
    gaussian_values,
    half_norms,
    upper_gaussian,
)
from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import NumericFailureError

_SMALLEST = sys.float_info.min  # of less the reciprocal overflows
# γ‖x‖² from which Gaussians lose a digit in 1e12
_FAR = 4096.0

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


@dataclass(frozen=True)
class Kernel:
    """A positive semi-definite function of two items, ready to be evaluated in blocks.

    ``linear``  a·b;  ``rbf``  w·exp(−γ‖a − b‖²);  ``poly``  (γ a·b + coef0)^degree;
    ``linear+rbf``  their sum. Cost O(m n d) by one matrix product for m×n values.
    """

    name: str
    gamma: float = 1.0
    degree: int = 2
    coef0: float = 1.0
    rbf_weight: float = 1.0

    def __call__(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Return the m×n matrix of kernel values between the rows of A and of B."""
        if self._is_gaussian:
            left, right = self._near(A, B)
            products = left.rows @ right.rows.T
            gaussian_values(products, left.halves, right.halves, *self._constants())
            return products
        products = A @ B.T
        if self.name == "linear":
            return products
        return (self.gamma * products + self.coef0) ** self.degree

    def upper(self, X: FloatArray) -> FloatArray:
        """Return the kernel matrix of the rows of X; what is below its diagonal may be anything.

        Of the Gaussians half of the products and of the exponentials are spared.
        """
        if not self._is_gaussian:
            return self(X, X)
        _, points = self._near(X, X)
        gram = np.empty((len(X), len(X)))
        upper_gaussian(points.rows, points.halves, *self._constants(), gram)
        return gram

    def sums(self, A: FloatArray, B: FloatArray, alpha: FloatArray) -> FloatArray:
        """Return ``Σ_j α_j K(a, b_j)`` for every row a of A."""
        if not self._is_gaussian:
            return np.asarray(self(A, B) @ alpha)
        left, right = self._near(A, B)
        sums = np.empty(len(A))
        gaussian_sums(
            left.rows, right.rows, left.halves, right.halves, *self._constants(), _plain(alpha),
            sums,
        )  # fmt: skip
        return sums

    def _near(self, A: FloatArray, B: FloatArray) -> tuple[_Points, _Points]:
        """Return the rows of A and B, moved together to where distances keep their digits.

        ``a·b − ½‖a‖² − ½‖b‖²`` loses as many as the norms are greater than the distances; near
        the origin that is nothing, and the rows stay as they are. A sum with the linear kernel,
        which a move would change, stays as it is too.
        """
        right = _Points.of(B)
        reach = 2.0 * self.gamma * right.greatest
        if self.name == "rbf" and _FAR < reach < math.inf:
            mean = B.mean(axis=0)
            A, B = (B - mean,) * 2 if A is B else (A - mean, B - mean)
            right = _Points.of(B)
        return right if A is B else _Points.of(A), right

    @property
    def _is_gaussian(self) -> bool:
        return self.name in ("rbf", "linear+rbf")

    def _constants(self) -> tuple[float, float, bool]:
        """Return what compiled Gaussians need; ints among them would be other types to compile."""
        return 2.0 * self.gamma, float(self.rbf_weight), self.name == "linear+rbf"


def _plain(values: FloatArray) -> FloatArray:
    """Return a contiguous, read-only view or copy: one type to the compiler."""
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


def scale_gamma(X: FloatArray) -> float:
    """Return 1 / (d · variance of X): the width when none is given.

    The mean squared distance of two rows is about 2·d·variance, so the Gaussian of a typical
    pair is about e⁻². Features that do not vary, or that there are none of, have width 1.
    """
    if X.size == 0:
        return 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        away = (X - X.sum() / X.size).reshape(-1)
    spread = X.shape[1] * (float(ddot(away, away)) / X.size)  # half the time of X.var()
    if not math.isfinite(spread):
        raise NumericFailureError("the variance of X overflowed: scale the features down")
    return 1.0 / spread if spread >= _SMALLEST else 1.0
