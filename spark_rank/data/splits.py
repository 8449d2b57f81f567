"""Splits: in which order a user's ratings stand in the block, and how many of them train."""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_rank.config import PrepareConfig

# splits that go by time: their ratings need one
_BY_TIME = ("temporal", "leave_last")


def goes_by_time(settings: PrepareConfig) -> bool:
    """Tell whether the split needs the time of every rating."""
    return settings.split in _BY_TIME


def presentation(
    entries: Column, user_key: Column, settings: PrepareConfig, seed: int
) -> tuple[Column, Column]:
    """Return a user's entries, those for training first, and the number of these.

    An entry is a struct with `item_key`, `item` and `rating`, and `timestamp` where it is needed
    or kept. The order is that of a hash of (seed, user key, item key), for splits by time that of
    time, ties by hash; in both parts. It depends on nothing but the user's own ratings. The parts:

    * ``random``: the first `train_share` in that order;
    * ``temporal``: the earliest `train_share`;
    * ``leave_last``: all but the `leave_last` latest;
    * ``k_fold``: all but every `folds`-th, beginning at a place that the hash of the user and
      `fold` tell: a user's folds differ by one rating at most, and over the users no fold is
      larger than another.

    Whatever the split, a user's first rating trains: who has one rating has nothing held out.
    O(n log n) for n ratings.
    """
    ordered = F.sort_array(
        F.transform(entries, lambda entry: _sortable(entry, user_key, settings, seed))
    )
    size = F.size(entries)
    if settings.split == "k_fold":
        held_out = _fold_start(user_key, settings, seed)
        return _held_out_last(ordered, held_out, settings), _fold_training(size, held_out, settings)
    if settings.split == "leave_last":
        return ordered, F.greatest(F.lit(1), size - settings.leave_last).cast("int")
    return ordered, training_size(size, settings.train_share)


def training_size(size: Column, train_share: float) -> Column:
    """Return how many of `size` ratings train: the share, rounded up, but one left to test.

    A user with a single rating trains on it; a share of 1 keeps nothing for testing.
    """
    # in decimals, for 0.55 · 200 is a little more than 110 in doubles
    exact = size.cast("decimal(12, 0)") * F.lit(Decimal(repr(train_share))).cast("decimal(20, 16)")
    share = F.ceil(exact).cast("int")
    if train_share >= 1.0:
        return size.cast("int")
    return F.greatest(F.lit(1), F.least(share, size - 1)).cast("int")


def _sortable(entry: Column, user_key: Column, settings: PrepareConfig, seed: int) -> Column:
    """Return the entry with what it is sorted by in front."""
    order = F.xxhash64(F.lit(seed), F.lit("split"), user_key, entry["item_key"])
    time = entry["timestamp"].alias("timestamp")
    values = [order.alias("order"), entry["item"].alias("item"), entry["rating"].alias("rating")]
    if goes_by_time(settings):
        return F.struct(time, *values)
    return F.struct(*values, time) if settings.timestamps else F.struct(*values)


def _fold_start(user_key: Column, settings: PrepareConfig, seed: int) -> Column:
    """Return the first position that the fold holds out, from 0 to `folds` - 1."""
    shift = F.pmod(F.xxhash64(F.lit(seed), F.lit("fold"), user_key), F.lit(settings.folds))
    return F.pmod(F.lit(settings.fold - 1) + shift, F.lit(settings.folds)).cast("int")


def _held_out_last(ordered: Column, start: Column, settings: PrepareConfig) -> Column:
    folds = F.lit(settings.folds)
    training = F.filter(ordered, lambda _, position: F.pmod(position, folds) != start)
    return F.concat(
        training, F.filter(ordered, lambda _, position: F.pmod(position, folds) == start)
    )


def _fold_training(size: Column, start: Column, settings: PrepareConfig) -> Column:
    # rounded up, and none where the fold begins behind the last rating
    beyond = size - start + F.lit(settings.folds - 1)
    held_out = F.floor(beyond / F.lit(settings.folds))
    return F.greatest(F.lit(1), size - held_out).cast("int")
