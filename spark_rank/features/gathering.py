"""Gathers rows of a feature matrix in double precision, in one compiled pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit


def gathered_rows(matrix: NDArray[np.floating[Any]], items: NDArray[np.int32]) -> Any:
    """Return the rows of `items` in double precision, or raise IndexError."""
    checked, chosen = gatherable(matrix, items)
    rows = np.empty((len(chosen), checked.shape[1]))
    gather(checked, chosen, rows)
    return rows


def gatherable(
    matrix: NDArray[np.floating[Any]], items: NDArray[np.int32]
) -> tuple[NDArray[np.floating[Any]], NDArray[np.int32]]:
    """Return both as compiled functions take them; raise IndexError, which these do not check."""
    if len(items) and not 0 <= items.min() <= items.max() < len(matrix):
        raise IndexError(f"items must be from 0 to {len(matrix) - 1}")
    checked, chosen = np.asarray(matrix).view(), np.asarray(items).view()
    checked.flags.writeable = chosen.flags.writeable = False  # one type for the compiler
    return checked, chosen


@njit(cache=True, nogil=True)
def gather(matrix: Any, items: Any, rows: Any) -> None:
    """Write the rows of `items` into `rows`; for use in compiled functions."""
    for place in range(len(items)):
        item = items[place]
        for column in range(matrix.shape[1]):
            rows[place, column] = matrix[item, column]
