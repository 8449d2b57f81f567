"""Counts of voters per pair, m_uv = number of voters who put u above v, and the Kemeny score."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spark_rank.preference.errors import InvalidMajoritiesError, InvalidRankingError
from spark_rank.preference.rankings import Ranking, order_positions, read_ranking

FloatArray = NDArray[np.float64]


def count_majorities(
    rankings: Sequence[Ranking], items: Sequence[Any] | None = None
) -> tuple[FloatArray, list[Any]]:
    """Return the n×n matrix m_uv of voters who put u above v, and the items of its rows.

    Rankings may be partial: an item that a voter leaves out is not compared by this voter (it is
    *not* put behind the others). Tied items count for neither direction. `items` are the rows; by
    default all ranked items in ascending order. O(Σ n_v²) for n_v items of voter v.
    """
    ballots = [read_ranking(ranking) for ranking in rankings]
    rows = _sorted_items(ballots) if items is None else list(items)
    index = {item: row for row, item in enumerate(rows)}
    if len(index) != len(rows):
        raise InvalidRankingError("an item is listed twice: give every item once")
    majorities = np.zeros((len(rows), len(rows)))
    for ballot in ballots:
        unknown = [item for item in ballot if item not in index]
        if unknown:
            raise InvalidRankingError(f"item {unknown[0]!r} is ranked but not among the items")
        named = np.array([index[item] for item in ballot], dtype=np.int64)
        places = np.array(list(ballot.values()), dtype=np.int64)
        majorities[np.ix_(named, named)] += places[:, None] < places
    return majorities, rows


def kemeny_score(order: Sequence[int], majorities: ArrayLike) -> float:
    """Return Σ m_vu over all pairs with u before v in `order`: the voters' pairs it misranks.

    `order` holds the row numbers of `majorities`. O(n²).
    """
    counts = checked_majorities(majorities)
    order_positions(order, range(len(counts)))
    by_place = counts[np.ix_(np.asarray(order, dtype=np.int64), np.asarray(order, dtype=np.int64))]
    return float(np.tril(by_place, -1).sum())


def kemeny_lower_bound(majorities: ArrayLike) -> float:
    """Return Σ_{u<v} min(m_uv, m_vu), below which no order's Kemeny score can lie. O(n²)."""
    counts = checked_majorities(majorities)
    return float(np.triu(np.minimum(counts, counts.T), 1).sum())


def checked_majorities(majorities: ArrayLike) -> FloatArray:
    """Return the counts as float64 with an empty diagonal, or raise `InvalidMajoritiesError`.

    Weighted voters may give fractions; the diagonal has no meaning and is not read.
    """
    counts = np.array(majorities, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise InvalidMajoritiesError(f"the counts are {counts.shape}: give a square matrix")
    np.fill_diagonal(counts, 0.0)
    if not np.isfinite(counts).all() or (counts < 0.0).any():
        raise InvalidMajoritiesError("counts of voters must be finite and not negative")
    with np.errstate(over="ignore"):
        if not np.isfinite(2.0 * counts.sum()):
            raise InvalidMajoritiesError("the sum of the counts overflows: scale them down")
    return counts


def _sorted_items(ballots: list[dict[Hashable, int]]) -> list[Any]:
    named: set[Any] = set().union(*ballots)
    try:
        return sorted(named)
    except TypeError:
        raise InvalidRankingError(
            "the items have no common order to break ties by: give `items` in the order you want"
        ) from None
