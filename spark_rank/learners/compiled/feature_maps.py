"""Compiled feature maps: each example's terms are written in one go, in O(d²)."""

from __future__ import annotations

import math

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray


@njit(cache=True, nogil=True)
def write_terms(Z: FloatArray, terms: FloatArray) -> None:
    """Write 1, √2 z_i, z_i², and √2 z_i z_j for i < j, for every row z of `Z`."""
    n, root = Z.shape[1], math.sqrt(2.0)
    for t in range(Z.shape[0]):  # no views of rows: their references would be counted
        terms[t, 0] = 1.0
        for i in range(n):
            terms[t, 1 + i] = root * Z[t, i]
            terms[t, 1 + n + i] = Z[t, i] * Z[t, i]
        column = 1 + 2 * n
        for i in range(n):
            for j in range(i + 1, n):
                terms[t, column] = terms[t, 1 + i] * Z[t, j]
                column += 1
