"""Kernels by name, and sums of them: ``linear``, ``rbf``, ``poly``, ``linear+rbf``, ..."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from spark_rank.learners.base import FloatArray

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
        right = squared_norms(B)
        left = right if A is B else squared_norms(A)
        if self.name == "rbf":
            return self._gaussian(products, left, right)
        return products + self._gaussian(products.copy(), left, right)

    def _gaussian(self, products: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        """Turn inner products into w·exp(−γ‖a − b‖²), overwriting them."""
        # in place and in one pass: at a hundred items a temporary costs as much as a pass
        _exponents(products, 0.5 * left, 0.5 * right, 2.0 * self.gamma)
        np.exp(products, out=products)
        if self.rbf_weight != 1.0:
            products *= self.rbf_weight
        return products


@njit(cache=True, nogil=True)
def _exponents(products: FloatArray, left: FloatArray, right: FloatArray, factor: float) -> None:
    """Turn a·b into ``factor · min(a·b − left − right, 0)`` in place; NaN stays NaN."""
    for i in range(products.shape[0]):
        for j in range(products.shape[1]):
            value = products[i, j] - left[i] - right[j]
            products[i, j] = factor * (0.0 if value > 0.0 else value)


def squared_norms(A: FloatArray) -> FloatArray:
    """Return ‖a‖² for every row."""
    return np.einsum("ij,ij->i", A, A)


def scale_gamma(X: FloatArray) -> float:
    """Return 1 / (d · variance of X): the width when none is given.

    The mean squared distance of two rows is about 2·d·variance, so the Gaussian of a typical
    pair is about e⁻².
    """
    spread = X.shape[1] * float(X.var())
    return 1.0 / spread if spread > 0.0 else 1.0
