"""A shared panel of reference reviewers: column j holds reviewer j's ratings of every item.

A missing rating is replaced by the reviewer's median, and the middle of the rating scale is
subtracted from all values, as in the papers. Only training ratings are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.data.blocks import training_part
from spark_rank.features.coverage import cover
from spark_rank.features.list_columns import flat_lists

# greedy coverage chooses among so many most active users
MOST_CANDIDATES = 20_000


@dataclass(frozen=True)
class Panel:
    """The reviewers in column order, their medians, and the items × reviewers matrix.

    `missing` is the value in a reviewer's column for an item that he or she has not rated.
    """

    users: list[int]
    user_ids: list[str]
    n_train: list[int]
    medians: NDArray[np.float64]
    missing: NDArray[np.float32]
    matrix: NDArray[np.float32]


def most_active_panel(blocks: DataFrame, size: int, n_items: int, middle: float) -> Panel:
    """Return the `size` users with the most training ratings (ties: by id)."""
    return _panel(blocks, _most_active(blocks, size).collect(), n_items, middle)


def covering_panel(
    blocks: DataFrame,
    size: int,
    n_items: int,
    middle: float,
    most_candidates: int = MOST_CANDIDATES,
) -> Panel:
    """Return `size` of the most active users, chosen greedily to cover the items that users rate.

    An item counts by its number of training ratings; the second opinion on it counts half as much
    as the first, the third a third (`spark_rank.features.coverage`). Among equals the more active
    user is chosen.
    """
    candidates = _most_active(blocks, most_candidates)
    rated = F.slice("items", 1, F.col("n_train")).alias("items")
    order = (F.col("n_train").desc(), "user_id")
    columns = ("user", "user_id", "n_train")
    table = (
        blocks.join(F.broadcast(candidates.select("user")), "user")
        .select(*columns, rated)
        .orderBy(*order)
        .toArrow()
    )
    items, ends = flat_lists(table, "items")
    chosen = cover(items.astype(np.int64), ends, _demand(blocks, n_items), size)
    return _panel(blocks, table.select(list(columns)).take(chosen).to_pylist(), n_items, middle)


def _most_active(blocks: DataFrame, count: int) -> DataFrame:
    return (
        blocks.where("n_train > 0")
        .select("user", "user_id", "n_train")
        .orderBy(F.col("n_train").desc(), "user_id")
        .limit(count)
    )


def _demand(blocks: DataFrame, n_items: int) -> NDArray[np.int64]:
    """Return every item's number of training ratings."""
    counted = training_part(blocks).groupBy("item").count().toArrow()
    demand = np.zeros(n_items, dtype=np.int64)
    demand[counted.column("item").to_numpy()] = counted.column("count").to_numpy()
    return demand


def _panel(blocks: DataFrame, members: Sequence[Any], n_items: int, middle: float) -> Panel:
    users = [row["user"] for row in members]
    ratings = _training_ratings(blocks, users)
    columns = np.searchsorted(np.sort(users), ratings["user"])
    columns = np.argsort(users)[columns]
    matrix, medians, missing = fill_matrix(
        columns, ratings["item"], ratings["rating"], (n_items, len(users)), middle
    )
    return Panel(
        users, [row["user_id"] for row in members], [row["n_train"] for row in members],
        medians, missing, matrix,
    )  # fmt: skip


def fill_matrix(
    columns: NDArray[np.int64],
    items: NDArray[np.int64],
    ratings: NDArray[np.float64],
    shape: tuple[int, int],
    middle: float,
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float32]]:
    """Return the filled items × reviewers matrix, the medians, and the values of missing ratings.

    `middle`, that of the rating scale, is subtracted from the matrix and the values. Every
    reviewer has at least one rating. O(ratings log ratings + items · reviewers).
    """
    by_column = np.argsort(columns, kind="stable")
    groups = np.split(ratings[by_column], np.searchsorted(columns[by_column], range(1, shape[1])))
    medians = np.array([np.median(group) for group in groups])
    missing = (medians - middle).astype(np.float32)
    matrix = np.tile(missing, (shape[0], 1))
    matrix[items, columns] = ratings - middle
    return matrix, medians, missing


def _training_ratings(blocks: DataFrame, users: list[int]) -> dict[str, NDArray[Any]]:
    members = blocks.where(F.col("user").isin(users))
    table = training_part(members, "user").toArrow()
    return {name: table.column(name).to_numpy() for name in table.column_names}
