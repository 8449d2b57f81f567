"""The input form of rankings and truths: items from the best to the worst, tied items grouped.

``["a", {"b", "c"}, "d"]`` puts a first, b and c tied behind it, and d last; a group is a set,
frozenset or tuple, and an item may be any other hashable value. A mapping from item to level (the
higher the better, like ratings) is read as the ranking by descending level.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.preference.errors import InvalidRankingError

IntArray = NDArray[np.int64]
Ranking = Sequence[Any] | Mapping[Any, float]

_GROUPS = (set, frozenset, tuple)


def read_ranking(ranking: Ranking) -> dict[Hashable, int]:
    """Return the place of every item, in the order given: 1 + the number of items before it.

    Tied items share a place, 1 for a tie at the top. O(n log n).
    """
    groups = _descending(ranking) if isinstance(ranking, Mapping) else _groups(ranking)
    places: dict[Hashable, int] = {}
    place = 1
    for group in groups:
        for item in group:
            if item in places:
                raise InvalidRankingError(f"item {item!r} occurs twice: name every item once")
            places[item] = place
        place = len(places) + 1
    return places


def order_positions(order: Sequence[Any], items: Iterable[Hashable]) -> IntArray:
    """Return for every item its position in `order`, which must hold exactly these items."""
    listed = list(items)
    positions = {item: position for position, item in enumerate(order)}
    if len(positions) != len(order) or len(order) != len(listed):
        raise InvalidRankingError(
            f"the order has {len(order)} entries, {len(positions)} of them different, for "
            f"{len(listed)} items: give each item exactly once"
        )
    unknown = [item for item in listed if item not in positions]
    if unknown:
        raise InvalidRankingError(f"item {unknown[0]!r} is not in the order: give every item")
    return np.array([positions[item] for item in listed], dtype=np.int64)


def _groups(ranking: Sequence[Any]) -> list[Iterable[Hashable]]:
    return [entry if isinstance(entry, _GROUPS) else (entry,) for entry in ranking]


def _descending(levels: Mapping[Any, float]) -> list[Iterable[Hashable]]:
    by_level: dict[float, list[Hashable]] = {}
    for item, level in levels.items():
        if math.isnan(level):
            raise InvalidRankingError(f"item {item!r} has no level: leave it out or give a number")
        by_level.setdefault(level, []).append(item)
    return [by_level[level] for level in sorted(by_level, reverse=True)]
