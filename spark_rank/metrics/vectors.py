"""Checks the input of every metric, and turns undefined results (NaN) into None."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def pair_of_vectors(h: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return scores and ratings as float64 vectors of one length, or raise ValueError."""
    # copies, so that a kernel is compiled only once and not again for read-only arrays
    scores, targets = np.array(h, dtype=np.float64), np.array(y, dtype=np.float64)
    if scores.ndim != 1 or scores.shape != targets.shape:
        raise ValueError(
            f"scores and ratings must be vectors of one length, not {scores.shape} and "
            f"{targets.shape}"
        )
    if not (np.isfinite(scores).all() and np.isfinite(targets).all()):
        raise ValueError("scores and ratings must be finite")
    return scores, targets


def scores_and_classes(h: ArrayLike, positive: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Return scores, and which items are positive (booleans, or the numbers 0 and 1)."""
    scores, classes = pair_of_vectors(h, positive)
    if not np.isin(classes, (0.0, 1.0)).all():
        raise ValueError("positive must hold True and False (or 1 and 0) only")
    return scores, classes == 1.0


def none_if_nan(value: float) -> float | None:
    """Translate a kernel's NaN, its word for undefined, for those who call it from Python."""
    return None if math.isnan(value) else float(value)
