"""Puts lists in another order so that their items differ: maximal marginal relevance.

References
----------
Carbonell, Goldstein: The Use of MMR, Diversity-Based Reranking, SIGIR 1998.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_rank.users.top_items import NONE

IntArray = NDArray[np.int64]


def diversified(
    values: NDArray[np.float64],
    positions: IntArray,
    units: NDArray[np.float32],
    share: float,
    size: int,
) -> IntArray:
    """Return the places of `size` items of every list, in the order in which they are taken.

    A row of `values` and `positions` is a user's list, the best first, longer than `size`; `units`
    are the directions of the items by position. The best item is taken first; then always the item
    with the greatest ``(1 − share) · value − share · greatest cosine with an item taken before``,
    where values are scaled so that the list's best is 1 and its worst 0. Of equal items the first
    is taken. Where no item is left, the place is `NONE`. O(users · size · length · d).
    """
    users = np.arange(len(values))
    filled = positions != NONE
    relevance = (1.0 - share) * _scaled(values, filled)
    directions = units[positions]
    closest = np.zeros(values.shape)
    free = filled.copy()
    order = np.full((len(values), min(size, values.shape[1])), NONE, dtype=np.int64)
    for place in range(order.shape[1]):
        gains = np.where(free, relevance - share * closest, -np.inf)
        taken = gains.argmax(axis=1)
        has_item = free[users, taken]
        order[has_item, place] = taken[has_item]
        free[users, taken] = False
        cosines = np.einsum("upd,ud->up", directions, directions[users, taken], dtype=np.float64)
        closest = cosines if place == 0 else np.maximum(closest, cosines)
    return order


def _scaled(values: NDArray[np.float64], filled: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the values of every list from 0, its worst, to 1, its best; 1 if all are equal."""
    known = np.where(filled, values, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        best = np.where(filled, values, -np.inf).max(axis=1, keepdims=True)
        worst = np.where(filled, values, np.inf).min(axis=1, keepdims=True)
        scaled = (known - worst) / (best - worst)
    return np.where(np.isnan(scaled), 1.0, scaled)


def directions(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the direction of every item from the mean item; 0 for items without features."""
    has_features = matrix.any(axis=1) if matrix.shape[1] else np.zeros(len(matrix), bool)
    rows = matrix.astype(np.float64)
    if has_features.any():
        rows = rows - rows[has_features].mean(axis=0)
    lengths = np.sqrt(np.einsum("if,if->i", rows, rows))
    usable = has_features & (lengths > 0.0)
    return np.where(usable[:, None], rows / np.where(usable, lengths, 1.0)[:, None], 0.0).astype(
        np.float32
    )
