"""Splits: the order of a user's ratings in the block, and the size of the training part."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.compiled import njit
from spark_rank.config import PrepareConfig

IntArray = NDArray[np.int64]

# splits by time, for which every rating needs a time
_BY_TIME = ("temporal", "leave_last")
# splits of all ratings together, which may leave a user without training ratings
GLOBAL = ("global", "global_k_fold")
GIVEN = "given"

_P1, _P2, _P3 = (
    np.uint64(0x9E3779B185EBCA87),
    np.uint64(0xC2B2AE3D27D4EB4F),
    np.uint64(0x165667B19E3779F9),
)
_P4, _P5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)


class SplitKeys(NamedTuple):
    """The start values of the hashes for a seed: of the order, and of the fold."""

    order: int
    fold: int


def split_keys(spark: SparkSession, seed: int) -> SplitKeys:
    """Return the keys of a seed."""
    hashes = [F.xxhash64(F.col("seed"), F.lit(name)) for name in ("split", "fold")]
    # Spark evaluates rows of a local table without a job
    seeds = pa.table({"seed": pa.array([seed], pa.int32() if abs(seed) < 2**31 else pa.int64())})
    row = spark.createDataFrame(seeds).select(*hashes).head()
    assert row is not None
    return SplitKeys(row[0], row[1])


def goes_by_time(settings: PrepareConfig) -> bool:
    """Tell whether the split needs the time of every rating."""
    return settings.split in _BY_TIME


def may_leave_users_without_training(settings: PrepareConfig) -> bool:
    """Tell whether a user may have held-out ratings alone."""
    return settings.split in (*GLOBAL, GIVEN)


def presentation(
    ends: IntArray,
    user_keys: IntArray,
    item_keys: IntArray,
    items: NDArray[np.int32],
    times: IntArray,
    settings: PrepareConfig,
    keys: SplitKeys,
    held_out: NDArray[np.bool_] | None = None,
) -> tuple[IntArray, IntArray]:
    """Return the positions of the users' ratings, training part first, and the sizes of that part.

    The ratings of user u are ``ends[u]`` to ``ends[u + 1]``. In both parts the order is that of a
    hash of (seed, user key, item key); for splits by time it is that of time, ties by hash. It
    depends on the user's own ratings alone. The training part is:

    * ``random``: the first `train_share` in that order;
    * ``temporal``: the earliest `train_share`;
    * ``leave_last``: all but the `leave_last` latest;
    * ``k_fold``: all but every `folds`-th; the first of these depends on the hash of the user and
      on `fold`. A user's folds differ by at most one rating, and over all users no fold is larger
      than another;
    * ``global``: the ratings whose own hash is below `train_share`;
    * ``global_k_fold``: those whose own hash does not fall into `fold` of `folds`;
    * ``given``: those that `held_out` does not mark.

    Of the first four, the training part has at least one rating: with a single rating, nothing is
    held out. Of the others it may have none. O(n log n) for n ratings.
    """
    sizes = np.diff(ends)
    by_time = times if goes_by_time(settings) else np.empty(0, np.int64)
    order = _sorted_by_hash(ends, user_keys, item_keys, items, by_time, keys.order)
    if settings.split == "k_fold":
        held_out = np.empty(len(order), np.bool_)
        held_out[order] = _every_kth(ends, user_keys, settings, keys)
        return order, np.maximum(1, _hold_out(order, ends, held_out))
    if settings.split in GLOBAL:
        drawn = _drawn(_rating_hashes(ends, user_keys, item_keys, keys.fold), settings)
        return order, _hold_out(order, ends, drawn)
    if settings.split == GIVEN:
        if held_out is None:
            raise ValueError("a given split needs the ratings that are held out")
        # a copy, because views of Arrow memory are read-only, for which it would compile again
        return order, _hold_out(order, ends, held_out.copy())
    if settings.split == "leave_last":
        return order, np.maximum(1, sizes - settings.leave_last)
    return order, training_sizes(sizes, settings.train_share)


def _every_kth(
    ends: IntArray, user_keys: IntArray, settings: PrepareConfig, keys: SplitKeys
) -> NDArray[np.bool_]:
    """Return which places of the users' orders belong to the fold."""
    starts = (settings.fold - 1 + _hashes(user_keys, keys.fold) % settings.folds) % settings.folds
    sizes = np.diff(ends)
    place = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes)
    return np.asarray(place % settings.folds == np.repeat(starts, sizes))


def _drawn(hashes: IntArray, settings: PrepareConfig) -> NDArray[np.bool_]:
    """Return which ratings are held out, by the hash of each."""
    if settings.split == "global_k_fold":
        return np.asarray(hashes % settings.folds == settings.fold - 1)
    # 53 bits of the hash against the share
    draws = hashes.view(np.uint64) >> np.uint64(11)
    return np.asarray(draws >= np.uint64(math.ceil(Fraction(repr(settings.train_share)) * 2**53)))


def training_sizes(sizes: IntArray, train_share: float) -> IntArray:
    """Return the sizes of the training parts: the share, rounded up, but one rating is held out.

    A single rating is for training, and with a share of 1 nothing is held out.
    """
    if train_share >= 1.0:
        return sizes.copy()
    # in fractions, because 0.55 · 200 is a little more than 110 in doubles
    share = Fraction(repr(train_share))
    different, places = np.unique(sizes, return_inverse=True)
    parts = [max(1, min(math.ceil(share * n), n - 1)) for n in different.tolist()]
    return np.array(parts, np.int64)[places]


@njit(cache=True)
def _hash_long(value: int, seed: int) -> int:
    """Return XXH64 of eight bytes, the same as Spark's ``xxhash64`` of a bigint."""
    found = np.uint64(seed) + _P5 + np.uint64(8)
    found ^= _rotated(np.uint64(value) * _P2, 31) * _P1
    found = _rotated(found, 27) * _P1 + _P4
    found = (found ^ (found >> np.uint64(33))) * _P2
    found = (found ^ (found >> np.uint64(29))) * _P3
    mixed: int = np.int64(found ^ (found >> np.uint64(32)))  # type: ignore[assignment]
    return mixed


@njit(cache=True)
def _rotated(value: np.uint64, bits: int) -> np.uint64:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@njit(cache=True)
def _hashes(values: IntArray, seed: int) -> IntArray:
    found = np.empty(len(values), np.int64)
    for i in range(len(values)):
        found[i] = _hash_long(values[i], seed)
    return found


@njit(cache=True)
def _sorted_by_hash(
    ends: IntArray,
    user_keys: IntArray,
    item_keys: IntArray,
    items: NDArray[np.int32],
    times: IntArray,
    seed: int,
) -> IntArray:
    """Return the positions of every user's ratings by hash, or by time and hash; ties by item."""
    order = np.empty(ends[-1], np.int64)
    for user in range(len(ends) - 1):
        first, last = ends[user], ends[user + 1]
        hashes = np.empty(last - first, np.int64)
        of_user = _hash_long(user_keys[user], seed)
        for place in range(first, last):
            hashes[place - first] = _hash_long(item_keys[place], of_user)
        own = np.argsort(hashes)
        for i in range(1, len(own)):
            # equal hashes are very unlikely, but the order must not depend on that of the input
            k = i
            while (
                k > 0
                and hashes[own[k]] == hashes[own[k - 1]]
                and items[first + own[k]] < items[first + own[k - 1]]
            ):
                own[k], own[k - 1] = own[k - 1], own[k]
                k -= 1
        if len(times):
            own = own[np.argsort(times[first:last][own], kind="mergesort")]
        order[first:last] = own + first
    return order


@njit(cache=True)
def _rating_hashes(ends: IntArray, user_keys: IntArray, item_keys: IntArray, seed: int) -> IntArray:
    """Return the hash of (seed, user key, item key) of every rating."""
    found = np.empty(ends[-1], np.int64)
    for user in range(len(ends) - 1):
        of_user = _hash_long(user_keys[user], seed)
        for place in range(ends[user], ends[user + 1]):
            found[place] = _hash_long(item_keys[place], of_user)
    return found


@njit(cache=True)
def _hold_out(order: IntArray, ends: IntArray, held_out: NDArray[np.bool_]) -> IntArray:
    """Move the held-out ratings of each user behind the others; both keep their order.

    Return the sizes of the training parts.
    """
    n_train = np.zeros(len(ends) - 1, np.int64)
    for user in range(len(ends) - 1):
        own = order[ends[user] : ends[user + 1]].copy()
        at = ends[user]
        for last in (False, True):
            for k in range(len(own)):
                if held_out[own[k]] == last:
                    order[at] = own[k]
                    at += 1
            if not last:
                n_train[user] = at - ends[user]
    return n_train
