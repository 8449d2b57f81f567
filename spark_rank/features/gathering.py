"""Rows of a feature matrix, one after the other: compiled, read and widened in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


def gathered_rows(matrix: NDArray[np.floating[Any]], items: NDArray[np.int32]) -> Any:
    """Return the rows of `items` in double precision, or raise IndexError."""
    if len(items) and not 0 <= items.min() <= items.max() < len(matrix):
        raise IndexError(f"items must be from 0 to {len(matrix) - 1}")
    rows = np.empty((len(items), matrix.shape[1]))
    _gather(np.asarray(matrix), items, rows)
    return rows


@njit(cache=True, nogil=True)
def _gather(matrix: Any, items: Any, rows: Any) -> None:
    for place in range(len(items)):
        item = items[place]
        for column in range(matrix.shape[1]):
            rows[place, column] = matrix[item, column]
