"""Labelled pairs of examples: checked, and those of all pairs inside groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spark_rank.learners.base import FloatArray, check_targets
from spark_rank.learners.errors import InvalidDataError

IntArray = NDArray[np.int64]


class ListedPairs(NamedTuple):
    """Pairs with a preference: the row that should score lower, the higher one, and the weight."""

    lower: IntArray
    higher: IntArray
    weights: FloatArray


def check_pairs(
    left: ArrayLike, right: ArrayLike, sign: ArrayLike, weight: ArrayLike | None, n_examples: int
) -> ListedPairs:
    """Return the pairs with a preference and a weight, or raise `InvalidDataError`.

    A sign of 1 prefers the right row, −1 the left one; 0 says nothing.
    """
    if n_examples == 0:
        raise InvalidDataError("no examples: at least one is needed to learn")
    rows = [_rows(left, "left", n_examples), _rows(right, "right", n_examples)]
    n_pairs = len(rows[0])
    signs = np.asarray(sign)
    if len(rows[1]) != n_pairs or signs.shape != (n_pairs,):
        raise InvalidDataError("left, right and sign must be vectors of one length, one per pair")
    if not np.isin(signs, (-1, 0, 1)).all():
        raise InvalidDataError("sign must be 1 (right preferred), -1 (left preferred) or 0")
    weights = np.ones(n_pairs) if weight is None or n_pairs == 0 else _weights(weight, n_pairs)
    counted = (signs != 0) & (weights > 0.0)
    turned = (signs < 0)[counted]
    first, second = rows[0][counted], rows[1][counted]
    lower, higher = np.where(turned, second, first), np.where(turned, first, second)
    return ListedPairs(lower, higher, weights[counted])


def pairs_inside(targets: FloatArray, groups: IntArray) -> ListedPairs:
    """Return every pair of different targets inside a group: O(Σ m_g²) memory."""
    lower, higher = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    order = np.lexsort((targets, groups))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    for part in np.split(order, starts[1:]):
        below, above = np.nonzero(targets[part][:, None] < targets[part][None, :])
        lower.append(part[below])
        higher.append(part[above])
    return ListedPairs(np.concatenate(lower), np.concatenate(higher), np.ones(sum(map(len, lower))))


def _rows(values: ArrayLike, name: str, n_examples: int) -> IntArray:
    rows: NDArray[Any] = np.asarray(values)
    if rows.ndim != 1 or (rows.dtype.kind not in "iu" and len(rows)):
        raise InvalidDataError(f"{name} must be a vector of row numbers")
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < n_examples:
        raise InvalidDataError(f"{name} must hold rows of X, from 0 to {n_examples - 1}")
    return rows.astype(np.int64)


def _weights(weight: ArrayLike, n_pairs: int) -> FloatArray:
    weights = check_targets(weight, n_pairs, "weight")
    if weights.min() < 0.0:
        raise InvalidDataError("weight must not be negative: 0 leaves a pair out")
    return weights
