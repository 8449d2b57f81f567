"""Collects the pool from which every user's reference reviewers are drawn, as in the papers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.features.list_columns import flat_lists
from spark_rank.features.pool import ReviewerPool, id_keys


@dataclass(frozen=True)
class CollectedPool:
    """The pool with its reviewers' ids, numbers of training ratings and medians."""

    pool: ReviewerPool
    user_ids: list[str]
    n_train: list[int]
    medians: NDArray[np.float64]
    group_size: int

    @property
    def greatest_value(self) -> float:
        """Return the largest absolute value of a feature."""
        values = (self.pool.ratings, self.pool.missing)
        return float(max(np.abs(part).max() for part in values))


def activity_group(blocks: DataFrame, least: int | None, most: int | None) -> DataFrame:
    """Return the users with `least` to `most` ratings, held-out ones included.

    Users without training ratings are nobody's reviewers.
    """
    n = F.size("items")
    above = F.lit(True) if least is None else n >= least
    rated = blocks.where("n_train > 0")
    return rated.where(above if most is None else above & (n <= most))


def collect_pool(
    group: DataFrame, *, most_reviewers: int, size: int, all_ratings: bool, middle: float, seed: int
) -> CollectedPool:
    """Return a hash sample of a group of users as the pool; each user gets `size` of them.

    Reviewers are numbered in the order of their ids. Their values are training ratings, with
    `all_ratings` the held-out ones too, minus `middle`. A user who joins or leaves the group does
    not change the draws of others.
    """
    draw = F.xxhash64(F.lit(seed), F.lit("reference"), "user_id")
    drawn = (
        group.select("user", draw.alias("draw"), "user_id")
        .orderBy("draw", "user_id")
        .limit(most_reviewers)
        .select("user")
    )
    shown = F.size("items") if all_ratings else F.col("n_train")
    table = (
        group.join(F.broadcast(drawn), "user")
        .select("user", "user_id", "n_train", _first("items", shown), _first("ratings", shown))
        .orderBy("user_id")
        .toArrow()
    )
    return _as_pool(table, size, middle, seed, group.count())


def _first(column: str, count: Column) -> Column:
    return F.slice(column, 1, count).alias(column)


def _as_pool(
    table: pa.Table, size: int, middle: float, seed: int, group_size: int
) -> CollectedPool:
    items, ends = flat_lists(table, "items")
    ratings = flat_lists(table, "ratings")[0].astype(np.float64)
    user_ids = table.column("user_id").to_pylist()
    medians = row_medians(ratings, ends)
    rows = np.repeat(np.arange(len(user_ids)), np.diff(ends))
    ascending = np.lexsort((items, rows))
    pool = ReviewerPool(
        ends=ends,
        items=items[ascending].astype(np.int32),
        ratings=(ratings[ascending] - middle).astype(np.float32),
        missing=(medians - middle).astype(np.float32),
        users=table.column("user").to_numpy().astype(np.int32),
        keys=id_keys(user_ids),
        size=size,
        seed=seed,
    )
    return CollectedPool(pool, user_ids, table.column("n_train").to_pylist(), medians, group_size)


def row_medians(values: NDArray[np.float64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the median of every row, ends[r] to ends[r + 1]; no row is empty."""
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    ascending = values[np.lexsort((values, rows))]
    sizes = np.diff(ends)
    lower, upper = ends[:-1] + (sizes - 1) // 2, ends[:-1] + sizes // 2
    return np.asarray((ascending[lower] + ascending[upper]) / 2.0)
