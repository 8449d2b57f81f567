"""The users and items of a data set with enough ratings: a view, however many ratings there are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spark_rank.experiments.rating_set import RatingSet, UserRatings, user_blocks


@dataclass(frozen=True, eq=False)
class RestrictedSet(UserRatings):
    """Some of the users and items of a rating set, in its order; the ratings stay where they are.

    Attributes
    ----------
    users : the users' numbers in `whole`.
    numbers : by item of `whole` its number here, -1 for an item that is left out.
    counts : the number of ratings that every user has here.
    """

    whole: RatingSet
    name: str
    users: NDArray[np.int64]
    numbers: NDArray[np.int32]
    counts: NDArray[np.int64]
    user_ids: NDArray[np.str_]
    item_ids: NDArray[np.str_]

    @property
    def n_ratings(self) -> NDArray[np.int64]:
        """Return the number of ratings of every user."""
        return self.counts

    def of_user(self, user: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return a user's items, ascending, and their ratings."""
        items, ratings = self.whole.of_user(int(self.users[user]))
        numbers = self.numbers[items]
        kept = numbers >= 0
        return numbers[kept], ratings[kept]


@lru_cache(maxsize=8)
def restricted(ratings: RatingSet, user_min: int, item_min: int) -> RestrictedSet:
    """Return the users with enough ratings, and the items with enough ratings by these.

    Goes through the ratings twice, once per process, block by block.
    """
    active = ratings.n_ratings >= user_min
    per_item = np.zeros(ratings.n_items, dtype=np.int64)
    for first, last in user_blocks(ratings.ends):
        of_active = np.repeat(active[first:last], np.diff(ratings.ends[first : last + 1]))
        items = ratings.items[ratings.ends[first] : ratings.ends[last]]
        per_item += np.bincount(items[of_active], minlength=ratings.n_items)
    known = per_item >= max(item_min, 1)
    counts = np.where(active, _counts_of(ratings, known), 0)
    users = np.flatnonzero(counts)
    return RestrictedSet(
        ratings,
        ratings.name,
        users,
        np.where(known, np.cumsum(known) - 1, -1).astype(np.int32),
        counts[users],
        ratings.user_ids[users],
        ratings.item_ids[known],
    )


def _counts_of(ratings: RatingSet, known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many of the known items every user has rated."""
    counts = np.zeros(ratings.n_users, dtype=np.int64)
    for first, last in user_blocks(ratings.ends):
        ends = ratings.ends[first : last + 1]
        before = np.zeros(int(ends[-1] - ends[0]) + 1, dtype=np.int64)
        np.cumsum(known[ratings.items[ends[0] : ends[-1]]], out=before[1:])
        counts[first:last] = np.diff(before[ends - ends[0]])
    return counts
