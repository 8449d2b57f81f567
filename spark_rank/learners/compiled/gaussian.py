"""Compiled Gaussians of many distances, in one pass over the products of items.

The exponential is a polynomial in this module: a library's takes five times as long in a compiled
loop, and here the code fixes the order of operations and so every bit. Fused multiplications and
additions are explicit, and round once on every processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.compiled.dot import dot

# e^x = 2^n e^r with n = x/ln 2 rounded, |r| ≤ ln 2 / 2. Adding this number, 1.5·2^52, leaves n in
# the last bits of the sum; ln 2 is subtracted in two parts.
_TO_LAST_BITS = 6755399441055744.0
_PER_LN2 = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LEAST = -708.0  # e^x is practically 0 here, and still a normal number
_PANEL = 64  # rows whose products with all others are in the cache together
# rows of the upper triangle begin so that their lengths are multiples of it: of a vector
_WIDTH = 8


def _fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a·b + c, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


def _power(typing_context: Any, turn: Any) -> Any:
    """Return 2^n for a number with n in its last bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        exponent = builder.shl(builder.bitcast(arguments[0], word), word(52))
        return builder.bitcast(builder.add(exponent, word(1023 << 52)), ir.DoubleType())

    return types.float64(types.float64), generate


fused: Any = intrinsic(_fused)
power: Any = intrinsic(_power)


@njit(cache=True, nogil=True, inline="always")
def _exponential(value: float) -> float:
    """Return e^min(value, 0). NaN stays NaN."""
    value = 0.0 if value > 0.0 else value
    value = _LEAST if value < _LEAST else value
    turn = fused(value, _PER_LN2, _TO_LAST_BITS)
    n = turn - _TO_LAST_BITS
    r = fused(n, -_LN2_LOW, fused(n, -_LN2_HIGH, value))
    e = 1.0 / 6227020800.0
    e = fused(e, r, 1.0 / 479001600.0)
    e = fused(e, r, 1.0 / 39916800.0)
    e = fused(e, r, 1.0 / 3628800.0)
    e = fused(e, r, 1.0 / 362880.0)
    e = fused(e, r, 1.0 / 40320.0)
    e = fused(e, r, 1.0 / 5040.0)
    e = fused(e, r, 1.0 / 720.0)
    e = fused(e, r, 1.0 / 120.0)
    e = fused(e, r, 1.0 / 24.0)
    e = fused(e, r, 1.0 / 6.0)
    e = fused(e, r, 0.5)
    e = fused(e, r, 1.0)
    return fused(e, r, 1.0) * power(turn)


@njit(cache=True, nogil=True)
def _turn_row(
    products: FloatArray,
    values: FloatArray,
    left: float,
    right: FloatArray,
    factor: float,
    weight: float,
    linear: bool,
) -> None:
    """Turn ``a·b`` into ``w·exp(factor · min(a·b − left − right, 0))``, plus a·b if `linear`.

    As many as there are `values`, which may be the products themselves.
    """
    if linear:
        for j in range(len(values)):
            distance = products[j] - left - right[j]
            values[j] = fused(weight, _exponential(factor * distance), products[j])
    else:
        for j in range(len(values)):
            values[j] = weight * _exponential(factor * (products[j] - left - right[j]))


@njit(cache=True, nogil=True)
def half_norms(X: FloatArray, halves: FloatArray) -> float:
    """Write ½‖·‖² of every row of `X`, and return the greatest."""
    greatest = 0.0
    for i in range(len(X)):
        halves[i] = 0.5 * dot(X[i], X[i])
        greatest = max(greatest, halves[i])
    return greatest


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
    for i in range(len(products)):
        _turn_row(products[i], products[i], left[i], right, factor, weight, linear)


@njit(cache=True, nogil=True)
def upper_gaussian(
    X: FloatArray, half: FloatArray, factor: float, weight: float, linear: bool, gram: FloatArray
) -> None:
    """Fill the upper triangle of the kernel matrix of the rows of `X`, and a little below it."""
    m = len(X)
    for start in range(0, m, _PANEL):
        stop = min(start + _PANEL, m)
        products = np.dot(X[start:stop], X[start:].T)
        for i in range(start, stop):
            first = max(start, i - (i - m) % _WIDTH)
            _turn_row(
                products[i - start, first - start :], gram[i, first:], half[i], half[first:],
                factor, weight, linear,
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
    for start in range(0, len(A), _PANEL):
        stop = min(start + _PANEL, len(A))
        values = np.dot(A[start:stop], B.T)
        for i in range(stop - start):
            _turn_row(values[i], values[i], left[start + i], right, factor, weight, linear)
        sums[start:stop] = np.dot(values, alpha)
