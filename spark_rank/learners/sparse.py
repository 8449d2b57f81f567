"""Sparse features: checked, and as dense parts for learners that go row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from spark_rank.learners.base import FloatArray, check_width
from spark_rank.learners.errors import InvalidDataError

_VALUES_AT_ONCE = 2**20  # of a dense part


def is_sparse(X: Any) -> bool:
    """Tell whether `X` is a sparse matrix or array of SciPy, or looks like one."""
    return hasattr(X, "tocsr")


def check_sparse(X: Any, n_features: int | None = None) -> Any:
    """Return `X` as float64 rows (CSR) or raise `InvalidDataError`; no zeros are filled in."""
    if len(X.shape) != 2:
        raise InvalidDataError(
            f"X must have two dimensions (examples × features), not {len(X.shape)}"
        )
    check_width(X.shape[1], n_features)
    if np.dtype(X.dtype).kind not in "biuf":
        raise InvalidDataError(f"X must hold real numbers, not {X.dtype}")
    rows = csr_array(X, dtype=np.float64)  # an array: a matrix multiplies in other ways
    if not np.isfinite(rows.data).all():
        raise InvalidDataError("X holds NaN or infinity: fill or drop those entries first")
    return rows


def dense_parts(X: Any) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the rows of checked sparse features as dense arrays of about a million numbers."""
    step = max(1, _VALUES_AT_ONCE // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        yield rows, X[rows].toarray()
