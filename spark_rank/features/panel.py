"""A shared panel of reference reviewers: column j holds reviewer j's ratings of every item.

Missing ratings take the reviewer's median and all are shifted by the middle of the panel's scale,
as in the papers. Only training ratings are used, those of the reviewers too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.data.blocks import training_part


@dataclass(frozen=True)
class Panel:
    """The reviewers in column order, their medians, and the items × reviewers matrix."""

    users: list[int]
    user_ids: list[str]
    n_train: list[int]
    medians: NDArray[np.float64]
    matrix: NDArray[np.float32]


def most_active_panel(blocks: DataFrame, size: int, n_items: int) -> Panel:
    """Return the `size` users with the most training ratings (ties: by id)."""
    members = (
        blocks.select("user", "user_id", "n_train")
        .orderBy(F.col("n_train").desc(), "user_id")
        .limit(size)
        .collect()
    )
    users = [row["user"] for row in members]
    ratings = _training_ratings(blocks, users)
    columns = np.searchsorted(np.sort(users), ratings["user"])
    columns = np.argsort(users)[columns]
    matrix, medians = fill_matrix(
        columns, ratings["item"], ratings["rating"], (n_items, len(users))
    )
    return Panel(
        users, [row["user_id"] for row in members], [row["n_train"] for row in members],
        medians, matrix,
    )  # fmt: skip


def fill_matrix(
    columns: NDArray[np.int64],
    items: NDArray[np.int64],
    ratings: NDArray[np.float64],
    shape: tuple[int, int],
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return the filled and shifted items × reviewers matrix and each reviewer's median.

    Every reviewer has at least one rating. O(ratings log ratings + items · reviewers).
    """
    by_column = np.argsort(columns, kind="stable")
    groups = np.split(ratings[by_column], np.searchsorted(columns[by_column], range(1, shape[1])))
    medians = np.array([np.median(group) for group in groups])
    middle = (ratings.min() + ratings.max()) / 2.0
    matrix = np.tile((medians - middle).astype(np.float32), (shape[0], 1))
    matrix[items, columns] = ratings - middle
    return matrix, medians


def _training_ratings(blocks: DataFrame, users: list[int]) -> dict[str, NDArray[Any]]:
    members = blocks.where(F.col("user").isin(users))
    table = training_part(members, "user").toArrow()
    return {name: table.column(name).to_numpy() for name in table.column_names}
