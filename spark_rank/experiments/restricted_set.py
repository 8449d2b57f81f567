"""The users and items of a data set with enough ratings, as a view without copies of ratings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spark_rank.experiments.rating_set import RatingSet, UserRatings, user_blocks


@dataclass(frozen=True, eq=False)
class RestrictedSet(UserRatings):
    """Some of the users and items of a rating set, in its order; the ratings are not copied.

    Attributes
    ----------
    users : the users' numbers in `whole`.
    numbers : for every item of `whole` its number in this set, -1 if it is left out.
    counts : the number of ratings of every user in this set.
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
        included = numbers >= 0
        return numbers[included], ratings[included]


@lru_cache(maxsize=8)
def restricted(ratings: RatingSet, user_min: int, item_min: int) -> RestrictedSet:
    """Return the users with enough ratings, and the items with enough ratings by these users.

    Reads the ratings twice, block by block; the result is cached in the process.
    """
    active = ratings.n_ratings >= user_min
    per_item = np.zeros(ratings.n_items, dtype=np.int64)
    for first, last in user_blocks(ratings.ends):
        of_active = np.repeat(active[first:last], np.diff(ratings.ends[first : last + 1]))
        items = ratings.items[ratings.ends[first] : ratings.ends[last]]
        per_item += np.bincount(items[of_active], minlength=ratings.n_items)
    included = per_item >= max(item_min, 1)
    counts = np.where(active, _counts_of(ratings, included), 0)
    users = np.flatnonzero(counts)
    return RestrictedSet(
        ratings,
        ratings.name,
        users,
        np.where(included, np.cumsum(included) - 1, -1).astype(np.int32),
        counts[users],
        ratings.user_ids[users],
        ratings.item_ids[included],
    )


def _counts_of(ratings: RatingSet, included: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many of the included items every user has rated."""
    counts = np.zeros(ratings.n_users, dtype=np.int64)
    for first, last in user_blocks(ratings.ends):
        ends = ratings.ends[first : last + 1]
        before = np.zeros(int(ends[-1] - ends[0]) + 1, dtype=np.int64)
        np.cumsum(included[ratings.items[ends[0] : ends[-1]]], out=before[1:])
        counts[first:last] = np.diff(before[ends - ends[0]])
    return counts
