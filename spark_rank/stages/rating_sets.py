"""Builds an experiment's data set from pieces, in little more memory than the set itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.data.duplicates import order_of_pairs
from spark_rank.data.packing import unpack_integers, unpack_ratings, unpack_strings
from spark_rank.experiments.rating_set import RatedTwiceError, RatingSet, ids_in_order, user_blocks

IntArray = NDArray[np.int64]

# the columns of a piece (`spark_rank.data.pieces`) that are read
READ_COLUMNS = ("users", "items", "user_codes", "item_codes", "ratings")
# bytes of a rating in a rating set: its item and its value
RATING_BYTES = 8
Pieces = Iterable[Mapping[str, Any]]


def build_rating_set(name: str, pieces: Callable[[], Pieces]) -> RatingSet:
    """Return all ratings of the pieces; raise `RatedTwiceError` for a repeated pair.

    `pieces` is called twice and returns the same pieces, in any order: the first pass counts the
    ratings of every user, the second puts each rating among those of its user. O(n log n) for the
    n ratings of a block of users.
    """
    counts, found_items = _count(pieces())
    user_ids, item_ids = ids_in_order(counts), ids_in_order(found_items)
    ends = np.zeros(len(user_ids) + 1, dtype=np.int64)
    np.cumsum([counts[user] for user in user_ids], out=ends[1:])
    data = RatingSet(
        name,
        ends,
        np.empty(ends[-1], dtype=np.int32),
        np.empty(ends[-1], dtype=np.float32),
        np.array(user_ids, dtype=np.str_),
        np.array(item_ids, dtype=np.str_),
    )
    user_numbers = {user: number for number, user in enumerate(user_ids)}
    item_numbers = {item: number for number, item in enumerate(item_ids)}
    following = ends[:-1].copy()
    for piece in pieces():
        users = _numbers(unpack_strings(piece["users"]).to_pylist(), user_numbers)
        items = _numbers(piece["items"], item_numbers)
        _put(
            users[unpack_integers(piece["user_codes"])],
            items[unpack_integers(piece["item_codes"])],
            unpack_ratings(piece["ratings"]).astype(np.float32),
            following,
            data.items,
            data.ratings,
        )
    _sort_users(data)
    return data


def _count(pieces: Pieces) -> tuple[Counter[str], set[str]]:
    """Return the number of ratings of every user, and the items."""
    counts: Counter[str] = Counter()
    items: set[str] = set()
    for piece in pieces:
        users = unpack_strings(piece["users"]).to_pylist()
        own = np.bincount(unpack_integers(piece["user_codes"]), minlength=len(users))
        counts.update(dict(zip(users, own.tolist(), strict=True)))
        items.update(piece["items"])
    return counts, items


def _numbers(ids: Iterable[str], numbers: Mapping[str, int]) -> IntArray:
    return np.array([numbers[one] for one in ids], dtype=np.int64)


@njit(cache=True)
def _put(users, items, ratings, following, all_items, all_ratings):  # type: ignore[no-untyped-def]
    """Put each rating into the next free place of its user."""
    for i in range(len(users)):
        place = following[users[i]]
        all_items[place], all_ratings[place] = items[i], ratings[i]
        following[users[i]] = place + 1


def _sort_users(data: RatingSet) -> None:
    """Put the ratings of every user into the order of the items."""
    for first, last in user_blocks(data.ends):
        own = slice(data.ends[first], data.ends[last])
        users = np.repeat(np.arange(last - first), np.diff(data.ends[first : last + 1]))
        order = order_of_pairs(users, data.items[own].astype(np.int64))
        items = data.items[own][order]
        data.items[own], data.ratings[own] = items, data.ratings[own][order]
        # sorting within users leaves `users` unchanged
        twice = np.flatnonzero((np.diff(users) == 0) & (np.diff(items) == 0))
        if len(twice):
            place = int(twice[0])
            user = str(data.user_ids[first + users[place]])
            raise RatedTwiceError(user, str(data.item_ids[items[place]]))
