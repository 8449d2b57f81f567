"""Ratings of the same user and item: which one counts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.data.pieces import NO_TIME

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class Ratings(NamedTuple):
    """Ratings as columns of equal length."""

    users: IntArray
    items: IntArray
    ratings: FloatArray
    times: IntArray

    def take(self, rows: NDArray[Any]) -> Ratings:
        """Return the rows chosen by places or a mask."""
        return Ratings(*(column[rows] for column in self))


def resolve(ratings: Ratings, policy: str) -> tuple[Ratings, Ratings]:
    """Return the ratings that count and the others, in the order of user and item.

    Policies: ``latest`` and ``first`` by time (an unknown time is the last choice; at the same
    time the higher and the lower rating), ``mean`` puts the mean of all in place of the latest,
    ``reject`` lets none count. The order is total up to rows that are equal in every value:
    whatever order they come in, the result is the same, means to the last bit.
    """
    order = order_of_pairs(ratings.users, ratings.items)
    ratings = ratings.take(order)
    repeats = np.zeros(len(order), bool)
    np.logical_and(
        ratings.users[1:] == ratings.users[:-1],
        ratings.items[1:] == ratings.items[:-1],
        out=repeats[1:],
    )
    if not repeats.any():
        return ratings, ratings.take(repeats)
    # only the pairs that occur again have an order of their own
    member = repeats.copy()
    member[:-1] |= repeats[1:]
    places = np.flatnonzero(member)
    group = np.cumsum(~repeats[places])
    among = ratings.take(places)
    unknown = among.times == NO_TIME
    sign = 1 if policy == "first" else -1
    inner = np.lexsort((sign * among.ratings, sign * among.times, unknown, group))
    for column, values in zip(ratings, among.take(inner), strict=True):
        column[places] = values
    if policy == "reject":
        return ratings.take(~member), ratings.take(member)
    others = ratings.take(repeats)
    if policy == "mean":
        firsts = np.flatnonzero(~repeats[places])
        ratings.ratings[places[firsts]] = _means(ratings.ratings[places], firsts)
    return ratings.take(~repeats), others


def order_of_pairs(users: IntArray, items: IntArray) -> IntArray:
    """Return the places in the order of user and item; ties as they come."""
    places = np.arange(len(users))
    for_place, for_item, for_user = (
        max(1, int(most).bit_length())
        for most in (len(users), items.max(initial=0), users.max(initial=0))
    )
    if for_user + for_item + for_place > 63:
        return np.lexsort((items, users))
    # sorting numbers that hold their place is several times faster than sorting places
    keys = ((users << for_item | items) << for_place) | places
    keys.sort()
    return keys & ((1 << for_place) - 1)


def _means(ratings: FloatArray, firsts: IntArray) -> FloatArray:
    """Return the mean of every run, summed one by one in order: no other order of rounding."""
    ends = np.append(firsts[1:], len(ratings))
    total = ratings[firsts].copy()
    for step in range(1, int((ends - firsts).max())):
        longer = firsts + step < ends
        total[longer] += ratings[firsts[longer] + step]
    return total / (ends - firsts)
