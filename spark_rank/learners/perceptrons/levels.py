"""Ordered levels, such as ratings or words, and the ranks 1..k that stand for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spark_rank.learners.base import check_targets
from spark_rank.learners.errors import InvalidDataError

IntArray = NDArray[np.int64]

_SHOWN = 5


def ordered_levels(y: Any, levels: ArrayLike | None = None) -> NDArray[Any]:
    """Return the levels from the lowest to the highest, or raise `InvalidDataError`.

    They are `levels`, else the categories of an ordered categorical `y` (of pandas), else the
    different numbers in `y`. Words have no order of their own: they need `levels` or categories.
    """
    given = _categories(y) if levels is None else np.asarray(levels)
    if given is None:
        values = np.asarray(y)
        if values.dtype.kind not in "biuf":
            values = check_targets(y, len(values)) if values.ndim else check_targets(y, -1)
        elif not np.isfinite(values).all():
            raise InvalidDataError("y holds NaN or infinity: drop those examples first")
        given = np.unique(values)
    if given.ndim != 1 or len(set(given.tolist())) != len(given):
        raise InvalidDataError("levels must be a list of different values, from low to high")
    if len(given) < 2:
        raise InvalidDataError(
            f"there is {len(given)} level (1 class) in y: give all levels, or n_ranks"
        )
    return given


def check_levels(y: Any, n_examples: int, levels: NDArray[Any]) -> IntArray:
    """Return the ranks 1..k of `y` among the levels or raise `InvalidDataError`."""
    if levels.dtype.kind in "biuf":
        values = check_targets(y, n_examples)
    else:
        values = np.asarray(y, dtype=object)
        if values.shape != (n_examples,):
            raise InvalidDataError(f"y must be a vector of {n_examples} levels, one per row of X")
    rank_of = {level: rank for rank, level in enumerate(levels.tolist(), 1)}
    ranks = [rank_of.get(value, 0) for value in values.tolist()]
    if 0 in ranks:
        shown = ", ".join(str(level) for level in levels[:_SHOWN])
        more = ", …" if len(levels) > _SHOWN else ""
        raise InvalidDataError(
            f"y holds {values[ranks.index(0)]!r}, which is none of the levels {shown}{more}: give "
            "all levels to the first call"
        )
    return np.array(ranks, dtype=np.int64)


def _categories(y: Any) -> NDArray[Any] | None:
    """Return the categories of an ordered categorical of pandas; None of anything else."""
    kind = getattr(y, "dtype", None)
    if not getattr(kind, "ordered", False):
        return None
    return np.asarray(getattr(kind, "categories", []))
