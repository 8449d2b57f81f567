"""Losses of a preference or a ranking against the truth: the weighted share of wrong pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spark_rank.learners.pairs.losses import misranked_pairs
from spark_rank.preference.preferences import (
    Preference,
    as_preference,
    checked_preferences,
    item_array,
)
from spark_rank.preference.rankings import IntArray, Ranking, order_positions, read_ranking
from spark_rank.preference.weights import PartWeight, Weight, kemeny


def preference_loss(
    prefer: Preference | Callable[[Any, Any], float], truth: Ranking, weight: Weight = kemeny
) -> float | None:
    """Return ``L(h, τ*) = 2/(n(n−1)) Σ_{u≠v} h(u, v) τ*(v, u)`` over the items of `truth`.

    ``τ*(v, u) = ω(σ*(v), σ*(u))`` if the truth puts v above u, else 0: tied pairs have loss 0, but
    are counted in n(n−1). `truth` is a ranking with grouped ties, or a mapping from item to level
    (see `rankings`). At most n(n−1)/2 calls of h, one `against` per item. With fewer than two
    items there is no pair: None.
    """
    places_of = read_ranking(truth)
    n = len(places_of)
    if n < 2:
        return None
    preference, items = as_preference(prefer), item_array(places_of)
    places = np.fromiter(places_of.values(), dtype=np.int64, count=n)
    total = 0.0
    for u in range(n):
        above = np.flatnonzero(places < places[u])
        if len(above):
            wrong = checked_preferences(preference, items[u], items[above])
            total += float(wrong @ weight(places[above], places[u]))
    return 2.0 * total / (n * (n - 1))


def ranking_loss(order: Sequence[Any], truth: Ranking, weight: Weight = kemeny) -> float | None:
    """Return ``L(σ, τ*) = 2/(n(n−1)) Σ_{u≠v} σ(u, v) τ*(v, u)`` of an order of the truth's items.

    `truth` and τ* are as for `preference_loss`. O(n log n) for the weights of this package, which
    only see parts of the ranking; O(n²) time and O(n) memory for any other function ω of two
    arrays of places. With fewer than two items: None.
    """
    places_of = read_ranking(truth)
    n = len(places_of)
    positions = order_positions(order, places_of)
    if n < 2:
        return None
    places = np.fromiter(places_of.values(), dtype=np.int64, count=n)
    if isinstance(weight, PartWeight):
        total = float(_inversions(positions, weight.parts(places)))
    else:
        total = _weighted_inversions(positions, places, weight)
    return 2.0 * total / (n * (n - 1))


def _inversions(positions: IntArray, parts: IntArray) -> int:
    """Count the pairs whose better part is further back."""
    distinct, levels = np.unique(-parts, return_inverse=True)
    return int(misranked_pairs(-positions.astype(np.float64), levels, len(distinct)))


def _weighted_inversions(positions: IntArray, places: IntArray, weight: Weight) -> float:
    total = 0.0
    for u in range(len(places)):
        wrong = places[(places < places[u]) & (positions > positions[u])]
        if len(wrong):
            total += float(np.sum(weight(wrong, places[u])))
    return total
