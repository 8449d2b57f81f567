"""Resolves several ratings of the same user and item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.data.pieces import NO_TIME

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class Ratings(NamedTuple):
    """Ratings as columns of equal length; `parts` are those of a given split."""

    users: IntArray
    items: IntArray
    ratings: FloatArray
    times: IntArray
    parts: NDArray[np.int8] | None = None

    def take(self, rows: NDArray[Any]) -> Ratings:
        """Return some rows, by positions or a mask."""
        parts = None if self.parts is None else self.parts[rows]
        return Ratings(
            self.users[rows], self.items[rows], self.ratings[rows], self.times[rows], parts
        )


def joined(several: Sequence[Ratings]) -> Ratings:
    """Return the rows of all, one after the other; all have parts, or none."""
    users, items, ratings, times = (
        np.concatenate(columns) for columns in zip(*(own[:4] for own in several), strict=True)
    )
    parts = [own.parts for own in several if own.parts is not None]
    return Ratings(users, items, ratings, times, np.concatenate(parts) if parts else None)


def resolve(ratings: Ratings, policy: str) -> tuple[Ratings, Ratings]:
    """Return the ratings that count and the others, both sorted by user and item.

    ``latest`` and ``first`` choose by time; a rating without a time is chosen last, and at equal
    times ``latest`` takes the higher rating, ``first`` the lower. ``mean`` replaces the latest by
    the mean of all, ``reject`` drops all. The result does not depend on the order of the rows,
    down to the last bit of the means.

    Of ratings in several parts of a given split only those in the last part count, whatever the
    policy: nothing that is held out may be learned from.
    """
    if ratings.parts is None:
        return _resolve(ratings, policy)
    last, earlier = _of_last_parts(ratings, ratings.parts)
    kept, others = _resolve(last, policy)
    others = joined([others, earlier])
    return kept, others.take(order_of_pairs(others.users, others.items))


def _of_last_parts(ratings: Ratings, parts: NDArray[np.int8]) -> tuple[Ratings, Ratings]:
    """Return the ratings in the last part that has the pair, and the others."""
    order = order_of_pairs(ratings.users, ratings.items)
    users, items = ratings.users[order], ratings.items[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (users[1:] != users[:-1]) | (items[1:] != items[:-1])
    firsts = np.flatnonzero(is_first)
    if len(firsts) == len(order):
        return ratings, ratings.take(np.zeros(len(order), bool))
    in_order = parts[order]
    last = np.maximum.reduceat(in_order, firsts)[np.cumsum(is_first) - 1]
    return ratings.take(order[in_order == last]), ratings.take(order[in_order < last])


def _resolve(ratings: Ratings, policy: str) -> tuple[Ratings, Ratings]:
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
    # only the rows of repeated pairs have to be ordered further
    member = repeats.copy()
    member[:-1] |= repeats[1:]
    places = np.flatnonzero(member)
    group = np.cumsum(~repeats[places])
    among = ratings.take(places)
    unknown = among.times == NO_TIME
    sign = 1 if policy == "first" else -1
    inner = np.lexsort((sign * among.ratings, sign * among.times, unknown, group))
    # ratings of a pair are all in one part
    for column, values in zip(ratings[:4], among.take(inner)[:4], strict=True):
        column[places] = values
    if policy == "reject":
        return ratings.take(~member), ratings.take(member)
    others = ratings.take(repeats)
    if policy == "mean":
        firsts = np.flatnonzero(~repeats[places])
        ratings.ratings[places[firsts]] = _means(ratings.ratings[places], firsts)
    return ratings.take(~repeats), others


def order_of_pairs(users: IntArray, items: IntArray) -> IntArray:
    """Return the positions sorted by user and item; ties keep their order."""
    places = np.arange(len(users))
    for_place, for_item, for_user = (
        max(1, int(most).bit_length())
        for most in (len(users), items.max(initial=0), users.max(initial=0))
    )
    if for_user + for_item + for_place > 63:
        return np.lexsort((items, users))
    # keys that hold the position sort several times faster than positions by key
    keys = ((users << for_item | items) << for_place) | places
    keys.sort()
    return keys & ((1 << for_place) - 1)


def _means(ratings: FloatArray, firsts: IntArray) -> FloatArray:
    """Return the mean of every run, summed one by one in order, to fix the rounding."""
    ends = np.append(firsts[1:], len(ratings))
    total = ratings[firsts].copy()
    for step in range(1, int((ends - firsts).max())):
        longer = firsts + step < ends
        total[longer] += ratings[firsts[longer] + step]
    return total / (ends - firsts)
