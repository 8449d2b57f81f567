"""Reads list columns of collected tables as flat arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def flat_lists(table: pa.Table, name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return a list column's values end to end, and the ends of its lists (with a leading 0)."""
    column = table.column(name)
    # Spark sends a table without rows as a column without chunks
    values = [chunk.flatten() for chunk in column.chunks] or [pa.array([], column.type.value_type)]
    lengths = [chunk.value_lengths().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    ends = np.concatenate([[0], *lengths]).astype(np.int64).cumsum()
    return pa.concat_arrays(values).to_numpy(zero_copy_only=False), ends
