"""The Gaussian of many distances: compiled, each product of two items touched once.

The exponential is a polynomial of its own: a library's takes five times as long inside a compiled
loop, and here the order of operations, so every bit, is part of the code.

Compiled kernels are cached by the text of their own file.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from spark_rank.learners.base import FloatArray

# e^x = 2^n e^r with n = x/ln 2 rounded, |r| ≤ ln 2 / 2. Adding this number, 1.5·2^52, leaves n in
# the last bits of the sum; ln 2 is taken off in two parts, the first with zeros at its end.
_TO_LAST_BITS = 6755399441055744.0
_PER_LN2 = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LEAST = -708.0  # e^x is as good as nothing there, and still a normal number
_PANEL = 64  # rows whose products with all others are in the cache together


@njit(cache=True, nogil=True)
def _turn_row(
    products: FloatArray,
    values: FloatArray,
    left: float,
    right: FloatArray,
    factor: float,
    weight: float,
    linear: bool,
    turns: FloatArray,
    parts: FloatArray,
) -> None:
    """Turn ``a·b`` into ``w·exp(factor · min(a·b − left − right, 0))``, plus a·b if `linear`.

    As many as there are `values`, which may be the products themselves. NaN stays NaN.
    """
    count = len(values)
    exponents = turns.view(np.int64)
    for j in range(count):
        value = products[j] - left - right[j]
        value = factor * (0.0 if value > 0.0 else value)
        value = _LEAST if value < _LEAST else value
        turn = value * _PER_LN2 + _TO_LAST_BITS
        turns[j] = turn
        n = turn - _TO_LAST_BITS
        r = (value - n * _LN2_HIGH) - n * _LN2_LOW
        e = 1.0 / 6227020800.0
        e = e * r + 1.0 / 479001600.0
        e = e * r + 1.0 / 39916800.0
        e = e * r + 1.0 / 3628800.0
        e = e * r + 1.0 / 362880.0
        e = e * r + 1.0 / 40320.0
        e = e * r + 1.0 / 5040.0
        e = e * r + 1.0 / 720.0
        e = e * r + 1.0 / 120.0
        e = e * r + 1.0 / 24.0
        e = e * r + 1.0 / 6.0
        e = e * r + 0.5
        e = e * r + 1.0
        parts[j] = weight * (e * r + 1.0)
    for j in range(count):
        exponents[j] = (exponents[j] << 52) + (1023 << 52)
    if linear:
        for j in range(count):
            values[j] = products[j] + parts[j] * turns[j]
    else:
        for j in range(count):
            values[j] = parts[j] * turns[j]


@njit(cache=True, nogil=True)
def gaussian_values(
    products: FloatArray,
    left: FloatArray,
    right: FloatArray,
    factor: float,
    weight: float,
    linear: bool,
) -> None:
    """Turn a matrix of products into kernel values in place; `left`, `right` are ½‖·‖²."""
    turns, parts = np.empty(products.shape[1]), np.empty(products.shape[1])
    for i in range(len(products)):
        _turn_row(
            products[i], products[i], left[i], right, factor, weight, linear, turns, parts
        )  # fmt: skip


@njit(cache=True, nogil=True)
def upper_gaussian(
    X: FloatArray, half: FloatArray, factor: float, weight: float, linear: bool, gram: FloatArray
) -> None:
    """Fill the upper triangle of the kernel matrix of the rows of `X`, its diagonal too."""
    m = len(X)
    turns, parts = np.empty(m), np.empty(m)
    for start in range(0, m, _PANEL):
        stop = min(start + _PANEL, m)
        products = np.dot(X[start:stop], X[start:].T)
        for i in range(start, stop):
            _turn_row(
                products[i - start, i - start :], gram[i, i:], half[i], half[i:], factor, weight,
                linear, turns, parts,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def gaussian_sums(
    A: FloatArray,
    B: FloatArray,
    left: FloatArray,
    right: FloatArray,
    factor: float,
    weight: float,
    linear: bool,
    alpha: FloatArray,
    sums: FloatArray,
) -> None:
    """Write ``Σ_j α_j K(a, b_j)`` for every row of `A`; the kernel values are never in memory."""
    turns, parts = np.empty(len(B)), np.empty(len(B))
    for start in range(0, len(A), _PANEL):
        stop = min(start + _PANEL, len(A))
        values = np.dot(A[start:stop], B.T)
        for i in range(stop - start):
            _turn_row(
                values[i], values[i], left[start + i], right, factor, weight, linear, turns, parts
            )  # fmt: skip
        sums[start:stop] = np.dot(values, alpha)
