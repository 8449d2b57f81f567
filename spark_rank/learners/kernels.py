"""Kernels by name, and sums of them: ``linear``, ``rbf``, ``poly``, ``linear+rbf``, ..."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np

from spark_rank.learners._gaussian import gaussian_sums, gaussian_values, lower_gaussian
from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import NumericFailureError

_SMALLEST = sys.float_info.min  # of less the reciprocal overflows

KERNELS = ("linear", "rbf", "poly", "linear+rbf", "precomputed")


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
        products = A @ B.T
        if self.name == "linear":
            return products
        if self.name == "poly":
            return (self.gamma * products + self.coef0) ** self.degree
        right = 0.5 * squared_norms(B)
        left = right if A is B else 0.5 * squared_norms(A)
        gaussian_values(products, left, right, *self._constants())
        return products

    def lower(self, X: FloatArray) -> FloatArray:
        """Return the kernel matrix of the rows of X; what is above its diagonal may be anything.

        Of the Gaussians half of the products and of the exponentials are spared.
        """
        if not self._is_gaussian:
            return self(X, X)
        rows = _plain(X)
        gram = np.empty((len(X), len(X)))
        factor, weight, linear = self._constants()
        lower_gaussian(rows, 0.5 * squared_norms(rows), factor, weight, linear, gram)
        return gram

    def sums(self, A: FloatArray, B: FloatArray, alpha: FloatArray) -> FloatArray:
        """Return ``Σ_j α_j K(a, b_j)`` for every row a of A."""
        if not self._is_gaussian:
            return np.asarray(self(A, B) @ alpha)
        left, right = _plain(A), _plain(B)
        sums = np.empty(len(A))
        factor, weight, linear = self._constants()
        halves = 0.5 * squared_norms(left), 0.5 * squared_norms(right)
        gaussian_sums(left, right, *halves, factor, weight, linear, _plain(alpha), sums)
        return sums

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


def squared_norms(A: FloatArray) -> FloatArray:
    """Return ‖a‖² for every row."""
    return np.einsum("ij,ij->i", A, A)


def scale_gamma(X: FloatArray) -> float:
    """Return 1 / (d · variance of X): the width when none is given.

    The mean squared distance of two rows is about 2·d·variance, so the Gaussian of a typical
    pair is about e⁻². Features that do not vary, or that there are none of, have width 1.
    """
    if X.size == 0:
        return 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        spread = X.shape[1] * float(X.var())
    if not math.isfinite(spread):
        raise NumericFailureError("the variance of X overflowed: scale the features down")
    return 1.0 / spread if spread >= _SMALLEST else 1.0
