"""A pool of reviewers: the ratings of some of them, chosen by hash, are a user's features.

The pool is a sparse matrix of ratings with a row per reviewer, which workers map into memory. A
missing rating is replaced by the reviewer's median, and the middle of the rating scale is
subtracted from all values. Nobody is his or her own reviewer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True)
class ReviewerPool:
    """Reviewers by number: the items and ratings of row r are ends[r] to ends[r + 1].

    Items ascend within a row. `missing` is the value of an item without a rating, `users` the
    reviewers' dense numbers, `keys` hashes of their ids; `size` is how many a user gets.
    """

    ends: NDArray[np.int64]
    items: NDArray[np.int32]
    ratings: NDArray[np.float32]
    missing: NDArray[np.float32]
    users: NDArray[np.int32]
    keys: NDArray[np.uint64]
    size: int
    seed: int

    @cached_property
    def _number_of(self) -> dict[int, int]:
        return {user: number for number, user in enumerate(self.users.tolist())}

    def chosen_for(self, user: int, user_id: str) -> NDArray[np.int32]:
        """Return the numbers of a user's reviewers, ascending: the `size` smallest by hash.

        The hash is of (seed, user id, reviewer id); ties go by the reviewer's number. So the choice
        depends only on these and on who is in the pool. If the pool has at most `size` other
        reviewers, all are chosen. O(reviewers of the pool).
        """
        draws = _mixed(self.keys, _seeded_key(user_id, self.seed))
        own = self._number_of.get(user)
        others = np.arange(len(draws), dtype=np.int32)
        if own is not None:
            draws, others = np.delete(draws, own), np.delete(others, own)
        if self.size >= len(draws):
            return others
        last = np.partition(draws, self.size - 1)[self.size - 1]
        below, ties = np.flatnonzero(draws < last), np.flatnonzero(draws == last)
        return others[np.sort(np.concatenate([below, ties[: self.size - len(below)]]))]

    def gather(self, items: NDArray[np.int32], reviewers: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the items × reviewers matrix of ratings minus the middle, missing ones filled in.

        O(items · reviewers) to fill, and per reviewer O(min(n, m) log max(n, m)) for the n ratings
        of the reviewer and m items, which may be in any order and repeat.
        """
        order = np.argsort(items, kind="stable")
        return _gathered(
            self.ends, self.items, self.ratings, self.missing, items[order], order, reviewers
        )


def id_keys(ids: Sequence[str]) -> NDArray[np.uint64]:
    """Return 64 bits of BLAKE2b of every id; they do not depend on the dense numbers."""
    digests = b"".join(_digest(user_id, b"") for user_id in ids)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def _seeded_key(user_id: str, seed: int) -> np.uint64:
    digest = _digest(user_id, seed.to_bytes(8, "little"))
    return np.uint64(int.from_bytes(digest, "little"))


def _digest(text: str, key: bytes) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8, key=key).digest()


@njit(cache=True)
def _mixed(keys: Any, seeded: Any) -> Any:
    """Return a hash of every key together with `seeded`: the last steps of SplitMix64."""
    mixed = np.empty_like(keys)
    for row in range(len(keys)):
        bits = keys[row] ^ seeded
        bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
        bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
        mixed[row] = bits ^ (bits >> np.uint64(31))
    return mixed


@njit(cache=True)
def _gathered(
    ends: Any, items: Any, ratings: Any, missing: Any, wanted: Any, places: Any, reviewers: Any
) -> Any:
    """Fill the matrix: look up the shorter list of items in the longer, both ascending.

    `wanted` are the items of the matrix, ascending, and `places` their rows.
    """
    matrix = np.empty((len(wanted), len(reviewers)))
    for row in range(len(wanted)):
        for column in range(len(reviewers)):
            matrix[row, column] = missing[reviewers[column]]
    for column in range(len(reviewers)):
        first, last = ends[reviewers[column]], ends[reviewers[column] + 1]
        own = items[first:last]
        place = 0
        if last - first < len(wanted):
            for k in range(last - first):
                place = _lower_bound(wanted, own[k], place)
                while place < len(wanted) and wanted[place] == own[k]:
                    matrix[places[place], column] = ratings[first + k]
                    place += 1
        else:
            for k in range(len(wanted)):
                place = _lower_bound(own, wanted[k], place)
                if place < last - first and own[place] == wanted[k]:
                    matrix[places[k], column] = ratings[first + place]
    return matrix


@njit(cache=True)
def _lower_bound(ascending: Any, value: Any, start: int) -> int:
    """Return the first position from `start` on with an entry of at least `value`."""
    low, high = start, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
