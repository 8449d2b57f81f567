"""A data set of an experiment: all ratings as one sparse matrix on one machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK_RATINGS = 2**20


class RatedTwiceError(ValueError):
    """A user has rated an item twice."""

    def __init__(self, user_id: str, item_id: str) -> None:
        super().__init__(f"user {user_id} has rated item {item_id} twice")


class UserRatings(ABC):
    """Ratings by user: users and items are numbered in the order of their ids."""

    name: str
    user_ids: NDArray[np.str_]
    item_ids: NDArray[np.str_]

    @property
    @abstractmethod
    def n_ratings(self) -> NDArray[np.int64]:
        """Return the number of ratings of every user."""

    @abstractmethod
    def of_user(self, user: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return a user's items, ascending, and their ratings."""

    @property
    def n_users(self) -> int:
        """Return the number of users."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """Return the number of items."""
        return len(self.item_ids)

    def columns_of(
        self, users: NDArray[Any], items: NDArray[Any], missing: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the items × users matrix of ratings; an unrated entry has the user's `missing`.

        `items` are distinct, in any order; `missing` has one value per user.
        O(items · users + ratings of the users).
        """
        row_of = np.full(self.n_items, -1, dtype=np.int64)
        row_of[items] = np.arange(len(items))
        matrix = np.empty((len(items), len(users)))
        matrix[:] = missing
        for column, user in enumerate(users):
            rated_items, ratings = self.of_user(int(user))
            rows = row_of[rated_items]
            rated = rows >= 0
            matrix[rows[rated], column] = ratings[rated]
        return matrix


@dataclass(frozen=True, eq=False)  # equality is identity, so that caches can use sets as keys
class RatingSet(UserRatings):
    """Ratings by user: user u has the entries ends[u] to ends[u + 1] of `items` and `ratings`.

    Users and items are numbered in the order of their ids (as numbers, if all are numbers); the
    items of a user ascend. The arrays may be memory-mapped files and must not be changed.
    """

    name: str
    ends: NDArray[np.int64]
    items: NDArray[np.int32]
    ratings: NDArray[np.float32]
    user_ids: NDArray[np.str_]
    item_ids: NDArray[np.str_]

    @classmethod
    def from_columns(
        cls, name: str, users: Sequence[str], items: Sequence[str], ratings: Sequence[float]
    ) -> RatingSet:
        """Build from one entry per rating, in any order; a repeated pair raises an error."""
        user_ids, user = _numbered(np.asarray(users, dtype=np.str_))
        item_ids, item = _numbered(np.asarray(items, dtype=np.str_))
        order = np.lexsort((item, user))
        user, item = user[order], item[order]
        twice = (np.diff(user) == 0) & (np.diff(item) == 0)
        if twice.any():
            place = int(np.flatnonzero(twice)[0])
            raise RatedTwiceError(user_ids[user[place]], item_ids[item[place]])
        ends = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=len(user_ids)))])
        values = np.asarray(ratings, dtype=np.float32)[order]
        return cls(name, ends.astype(np.int64), item.astype(np.int32), values, user_ids, item_ids)

    @property
    def n_ratings(self) -> NDArray[np.int64]:
        """Return the number of ratings of every user."""
        return np.diff(self.ends)

    @cached_property
    def levels(self) -> NDArray[np.float32]:
        """Return the distinct ratings, ascending."""
        blocks = np.split(self.ratings, range(_BLOCK_RATINGS, len(self.ratings), _BLOCK_RATINGS))
        return reduce(np.union1d, map(np.unique, blocks))

    def of_user(self, user: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return a user's items, ascending, and their ratings."""
        entries = slice(self.ends[user], self.ends[user + 1])
        return self.items[entries], self.ratings[entries]

    def ranks(self, ratings: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the ranks 1..k of ratings among the levels of this set."""
        return np.searchsorted(self.levels, ratings).astype(np.int64) + 1

    @property
    def middle(self) -> float:
        """Return the middle of the scale, between the least and the greatest rating."""
        return float(self.levels[0] + self.levels[-1]) / 2.0


def user_blocks(ends: NDArray[np.int64], most: int = _BLOCK_RATINGS) -> Iterator[tuple[int, int]]:
    """Yield ranges of users with `most` ratings together, or one user with more."""
    first = 0
    while first < len(ends) - 1:
        last = int(np.searchsorted(ends, ends[first] + most, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def ids_in_order(different: Iterable[str]) -> list[str]:
    """Return distinct ids in the order in which they are numbered."""
    by_text = sorted(different)
    return sorted(by_text, key=int) if all(text.isdecimal() for text in by_text) else by_text


def _numbered(ids: NDArray[np.str_]) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Return the distinct ids in order, and each entry's number among them."""
    different, places = np.unique(ids, return_inverse=True)
    ordered = ids_in_order(different.tolist())
    number_of = {text: number for number, text in enumerate(ordered)}
    numbers = np.array([number_of[text] for text in different.tolist()], dtype=np.int64)
    return np.array(ordered, dtype=np.str_), numbers[places]
