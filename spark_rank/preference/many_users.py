"""Compiled rankings of many users' items by scores or votes, for the stage `rank`.

`quicksort_rank` and `degree_rank` take any preference and call it in Python. Here preferences come
from scores, and a draw is a function of the user's key and the draw's number, so that rankings do
not depend on other users. With the same draws both give the same orders.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.learners.compiled.fenwick import count_below, insert
from spark_rank.learners.perceptrons.draws import Words, mix, uniform
from spark_rank.preference.preferences import FloatArray

IntArray = NDArray[np.int64]


class UserRankings(NamedTuple):
    """The rankings of some users.

    `chosen` are the rows of their items, most preferred first, user after user; user u has those
    from ``ends[u]`` to ``ends[u + 1]``. `calls` is the number of compared pairs. Undefined losses
    are NaN: `preference_losses` with fewer than two items, `ranking_losses` also if not all items
    are ordered.
    """

    chosen: IntArray
    ends: IntArray
    calls: IntArray
    preference_losses: FloatArray
    ranking_losses: FloatArray


@njit(cache=True, nogil=True)
def rank_users(
    scores: FloatArray, ratings: FloatArray, ends: IntArray, keys: Words, sort: bool, top: int
) -> Any:
    """Order every user's items: by QuickSort with random pivots, or by degree.

    Item i is preferred to item j by the share of voters that score it higher, a tie counting ½.
    O(V n log n) a user by QuickSort, O(V n²) by degree, and O(V n log n) for the losses, which are
    those of `preference_loss` and `ranking_loss` against the order of the ratings.

    Parameters
    ----------
    scores
        A row per item and a column per voter; user u's items are the rows from ``ends[u]`` to
        ``ends[u + 1]``. They must be finite.
    ratings
        The same items' ratings.
    keys
        One per user; the user's draws depend on it.
    sort, top
        Whether to sort by QuickSort; how many items to order.
    """
    users = len(ends) - 1
    sizes = np.minimum(np.diff(ends), top)
    chosen_ends = np.zeros(users + 1, np.int64)
    chosen_ends[1:] = np.cumsum(sizes)
    chosen = np.empty(chosen_ends[-1], np.int64)
    calls = np.zeros(users, np.int64)
    losses = np.full((2, users), np.nan)
    for user in range(users):
        own, first = scores[ends[user] : ends[user + 1]], ends[user]
        n = len(own)
        if sort:
            order, calls[user] = _quicksort(own, keys[user], sizes[user])
        else:
            order, calls[user] = _by_degree(own), n * (n - 1) // 2
        for place in range(sizes[user]):
            chosen[chosen_ends[user] + place] = first + order[place]
        if n < 2:
            continue
        levels, n_levels = _levels(ratings[first : ends[user + 1]])
        pairs = n * (n - 1)
        wrong = 0
        for voter in range(own.shape[1]):
            wrong += _doubled_wrong_pairs(own[:, voter].copy(), levels, n_levels)
        losses[0, user] = wrong / own.shape[1] / pairs
        if sizes[user] == n:
            losses[1, user] = _doubled_wrong_pairs(_falling(order), levels, n_levels) / pairs
    return UserRankings(chosen, chosen_ends, calls, losses[0], losses[1])


@njit(cache=True, nogil=True)
def _quicksort(scores: FloatArray, key: Any, wanted: int) -> tuple[IntArray, int]:
    """Return the rows in the order of `quicksort_rank`; only the first `wanted` are in order.

    Draw t is a function of the key and t.
    """
    n, voters = scores.shape
    order = np.arange(n)
    behind = np.empty(n, np.int64)  # those that go behind the pivot, in their order
    parts = np.empty((n + 2, 2), np.int64)
    parts[0] = 0, n
    n_parts, n_draws, calls = 1, np.uint64(0), 0
    while n_parts:
        n_parts -= 1
        start, stop = parts[n_parts]
        if start >= wanted:
            break  # parts come from left to right: all others begin further right
        if stop - start < 2:
            continue
        at = start + np.int64(uniform(mix(key ^ mix(n_draws))) * (stop - start))
        n_draws += np.uint64(1)
        pivot, order[at] = order[at], order[start]
        calls += stop - start - 1
        middle, n_behind = start, 0
        for place in range(start + 1, stop):
            other = order[place]
            wins = 0.0
            for voter in range(voters):
                if scores[pivot, voter] > scores[other, voter]:
                    wins += 1.0
                elif scores[pivot, voter] == scores[other, voter]:
                    wins += 0.5
            if uniform(mix(key ^ mix(n_draws))) < wins / voters:
                behind[n_behind] = other
                n_behind += 1
            else:
                order[middle] = other
                middle += 1
            n_draws += np.uint64(1)
        order[middle] = pivot
        order[middle + 1 : stop] = behind[:n_behind]
        parts[n_parts] = middle + 1, stop
        parts[n_parts + 1] = start, middle
        n_parts += 2
    return order, calls


@njit(cache=True, nogil=True)
def _by_degree(scores: FloatArray) -> IntArray:
    """Return the rows by the number of others that each is preferred to; ties keep their order."""
    n, voters = scores.shape
    doubled = np.zeros(n, np.int64)
    for i in range(n):
        for j in range(i):
            for voter in range(voters):
                wins = 1 + int(scores[i, voter] > scores[j, voter])
                wins -= int(scores[i, voter] < scores[j, voter])
                doubled[i] += wins
                doubled[j] += 2 - wins
    return np.argsort(-doubled, kind="mergesort")


@njit(cache=True, nogil=True)
def _falling(order: IntArray) -> FloatArray:
    """Return scores that fall in this order."""
    scores = np.empty(len(order))
    for place in range(len(order)):
        scores[order[place]] = -place
    return scores


@njit(cache=True, nogil=True)
def _levels(ratings: FloatArray) -> tuple[IntArray, int]:
    """Return the level of every rating, from 0, and the number of levels."""
    different = np.unique(ratings)
    return np.searchsorted(different, ratings), len(different)


@njit(cache=True, nogil=True)
def _doubled_wrong_pairs(scores: FloatArray, levels: IntArray, n_levels: int) -> int:
    """Return how often a lower level has the higher score, twice, and how often an equal one.

    O(n log n), by a Fenwick tree of the levels that have been met from the highest score down.
    """
    order = np.argsort(-scores)
    tree = np.zeros(n_levels + 1, np.int64)
    found, start = 0, 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and scores[order[stop]] == scores[order[start]]:
            stop += 1
        for place in range(start, stop):
            found += count_below(tree, levels[order[place]])
        for place in range(start, stop):
            insert(tree, levels[order[place]])
        # those that are equal were not met the first time: of these every pair counts once
        for place in range(start, stop):
            found += count_below(tree, levels[order[place]])
        start = stop
    return found
