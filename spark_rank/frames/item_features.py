"""What items look like to a learner, made from the training parts of blocks: a function a kind.

Every function takes blocks (``user, user_id, items, ratings, n_train``) and items (``item,
item_id``) and returns the arrays of all items; `feature_tables` and
`spark_rank.features.files.write_files` make tables and files of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from spark_rank.errors import InputDataError
from spark_rank.features.als import learn_als_factors
from spark_rank.features.factor_model import most_users
from spark_rank.features.factors import Factors, learn_factors, sample_users
from spark_rank.features.files import write_files
from spark_rank.features.given import chunks, match_vectors, scaled, standard_scale
from spark_rank.features.offset import item_offsets
from spark_rank.features.panel import covering_panel, most_active_panel
from spark_rank.features.pool import ReviewerPool
from spark_rank.features.reference import CollectedPool, activity_group, collect_pool
from spark_rank.records.features import (
    FactorFacts,
    FeatureFacts,
    FeatureFiles,
    GivenFacts,
    ReviewerFacts,
)
from spark_rank.tables.contracts import ITEM_FEATURES, PANEL, REVIEWER_RATINGS
from spark_rank.wording import count_of

_ROWS_AT_ONCE = 1 << 16
# of the table of items in one task, which Spark sends as one message of at most 128 MB
_TASK_BYTES = 1 << 26
Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class FeatureArrays:
    """The features of all items, in the order of their numbers.

    `items` has ``item, item_id, offset``; `matrix` has no columns where no features are shared,
    `prior` no rows where nothing is expected of a user. `squared_radius` bounds ‖x‖² over items
    and users. `reviewers` are the columns of the table `panel`; `kind` makes the facts.
    """

    items: pa.Table
    matrix: NDArray[np.float32]
    prior: NDArray[np.float32]
    squared_radius: float
    pool: ReviewerPool | None = None
    reviewers: pa.Table | None = None
    kind: Callable[..., FeatureFacts] = FeatureFacts

    @classmethod
    def shared(
        cls,
        items: pa.Table,
        matrix: NDArray[np.float32],
        prior: NDArray[np.float32] | None = None,
        **more: Any,
    ) -> FeatureArrays:
        """Return features that all users share; without a `prior` nothing is expected of them."""
        if prior is None:
            prior = np.empty((0, matrix.shape[1]), dtype=np.float32)
        return cls(items, matrix, prior, squared_radius(matrix), **more)

    def write(self, folder: Path) -> FeatureFiles:
        """Write the files that workers map into memory into a local folder."""
        return write_files(
            folder,
            self.matrix,
            self.items.column("offset").to_numpy(),
            self.prior,
            self.items.column("item_id").to_pylist(),
            self.pool,
        )

    def facts(self, files: FeatureFiles) -> FeatureFacts:
        """Return what is recorded of the features; `files` are those that `write` has written."""
        return self.kind(files=files, squared_radius=self.squared_radius)


def factor_features(
    blocks: DataFrame,
    items: DataFrame,
    *,
    rank: int,
    rounds: int,
    seed: int,
    user_share: float = 1.0,
    max_ratings: int = 10_000_000,
    progress: Progress | None = None,
) -> FeatureArrays:
    """Learn item factors, and what to expect of every user, from a hash sample of the users.

    The sample is `user_share` of them, or less where they have more than about `max_ratings`.
    `progress` is told the number of every round and the noise.
    """
    in_order = items.select("item", "item_id").toArrow().sort_by("item")
    data = sample_users(
        blocks,
        n_items=len(in_order),
        share=user_share,
        max_ratings=max_ratings,
        max_users=most_users(rank),
        seed=seed,
    )
    if len(data.ratings) == 0:
        raise InputDataError(
            "features: the sample of users has no training rating: raise features.user_share or "
            "features.max_ratings"
        )
    found = learn_factors(data, rank=rank, rounds=rounds, seed=seed, progress=progress)
    return _with_factors(in_order, found)


def als_features(
    blocks: DataFrame,
    items: DataFrame,
    *,
    rank: int,
    rounds: int,
    regularization: float,
    shrinkage: float,
    seed: int,
    user_share: float = 1.0,
    progress: Progress | None = None,
) -> FeatureArrays:
    """Learn item factors by MLlib's ALS, and what to expect of every user, on the executors.

    It is done from the training ratings of a hash sample of users, `user_share` of them, and no
    rating comes to the driver. `progress` is told the number of every pass over the users and the
    noise.
    """
    offsets = item_offsets(blocks, items, shrinkage).toArrow().sort_by("item")
    found = learn_als_factors(
        blocks,
        offsets.column("offset").to_numpy(),
        rank=rank,
        rounds=rounds,
        regularization=regularization,
        share=user_share,
        seed=seed,
        progress=progress,
    )
    return _with_factors(offsets.select(["item", "item_id"]), found)


def _with_factors(items: pa.Table, found: Factors) -> FeatureArrays:
    kind = partial(
        FactorFacts,
        users=found.n_users,
        ratings=found.n_ratings,
        noise=found.noise,
        spread=found.spread,
    )
    offsets = items.append_column("offset", pa.array(found.offset))
    return FeatureArrays.shared(offsets, found.matrix, found.prior, kind=kind)


def offset_features(blocks: DataFrame, items: DataFrame, *, shrinkage: float) -> FeatureArrays:
    """Return the item offset alone: an item has no features."""
    offsets = item_offsets(blocks, items, shrinkage).toArrow().sort_by("item")
    return FeatureArrays.shared(offsets, np.empty((len(offsets), 0), dtype=np.float32))


def panel_features(
    blocks: DataFrame,
    items: DataFrame,
    *,
    size: int,
    choice: Literal["most_active", "coverage"],
    middle: float,
    shrinkage: float,
) -> FeatureArrays:
    """Choose the reviewers whose ratings all users share, about the `middle` of the scale."""
    offsets = item_offsets(blocks, items, shrinkage).toArrow().sort_by("item")
    choose = covering_panel if choice == "coverage" else most_active_panel
    panel = choose(blocks, size, len(offsets), middle)
    reviewers = _reviewers(panel.users, panel.user_ids, panel.n_train, panel.medians, panel.missing)
    return FeatureArrays.shared(offsets, panel.matrix, reviewers=reviewers)


def reference_features(
    blocks: DataFrame,
    items: DataFrame,
    *,
    size: int,
    least: int | None,
    most: int | None,
    most_reviewers: int,
    all_ratings: bool,
    middle: float,
    shrinkage: float,
    seed: int,
) -> FeatureArrays:
    """Collect the pool that every user's `size` reviewers are drawn from.

    It is a sample of the users with `least` to `most` ratings. They show their training ratings,
    or with `all_ratings` the held-out ones too.
    """
    group = activity_group(blocks, least, most)
    collected = collect_pool(
        group,
        most_reviewers=most_reviewers,
        size=size,
        all_ratings=all_ratings,
        middle=middle,
        seed=seed,
    )
    if collected.group_size < 2:
        raise InputDataError(
            f"features: {count_of(collected.group_size, 'user')} with {least or 1} to "
            f"{most or 'any number of'} ratings: too few to draw reviewers from: change "
            "features.reference_min or features.reference_max"
        )
    return replace(
        offset_features(blocks, items, shrinkage=shrinkage),
        # every feature is at most the greatest value: no user's items are farther out
        squared_radius=size * collected.greatest_value**2,
        pool=collected.pool,
        reviewers=_pooled(collected),
        kind=partial(
            ReviewerFacts, group=collected.group_size, reviewers=len(collected.pool.users)
        ),
    )


def given_features(
    blocks: DataFrame,
    items: DataFrame,
    vectors: DataFrame,
    *,
    standard: bool,
    shrinkage: float,
) -> FeatureArrays:
    """Take vectors ``item_id, features`` that came with the items, and the item offset.

    With `standard` every feature gets mean 0 and standard deviation 1; an item without a vector
    gets zeros.
    """
    matched, facts = match_vectors(items, vectors, "given")
    scale = standard_scale(matched, facts) if standard else None
    parts = [part for _, part in chunks(scaled(matched, facts, scale), facts)]
    offsets = item_offsets(blocks, items, shrinkage).toArrow().sort_by("item")
    kind = partial(GivenFacts, width=facts.width, items_without=facts.missing)
    return FeatureArrays.shared(offsets, np.concatenate(parts), kind=kind)


def feature_tables(spark: SparkSession, made: FeatureArrays) -> dict[str, DataFrame]:
    """Return the tables `item_features`, `panel` and `reviewer_ratings`, those that there are."""
    tables = {ITEM_FEATURES.table: item_table(spark, made.items, made.matrix)}
    if made.reviewers is not None:
        tables[PANEL.table] = spark.createDataFrame(made.reviewers).coalesce(1)
    if made.pool is not None:
        tables[REVIEWER_RATINGS.table] = _values(spark, made.pool, made.items)
    return tables


def item_table(spark: SparkSession, items: pa.Table, matrix: NDArray[np.float32]) -> DataFrame:
    """Return ``item, item_id, offset`` with the rows of the matrix as features; null without."""
    n_items, width = matrix.shape
    ends = pa.array(np.arange(0, (n_items + 1) * width, width) if width else [0], pa.int32())
    vectors = pa.ListArray.from_arrays(ends, pa.array(matrix.ravel()))
    if width == 0:
        vectors = pa.nulls(n_items, vectors.type)
    table = spark.createDataFrame(items.append_column("features", vectors))
    # one file, on however many cores, where a row per item is little: a task carries its rows
    return table.coalesce(-(-matrix.nbytes // _TASK_BYTES) or 1)


def squared_radius(matrix: NDArray[np.float32]) -> float:
    """Return the largest ‖x‖² of the rows; some of them at a time, for they may be many."""
    starts = range(0, len(matrix), _ROWS_AT_ONCE)
    parts = (matrix[start : start + _ROWS_AT_ONCE].astype(np.float64) for start in starts)
    return float(max(((part**2).sum(axis=1).max() for part in parts), default=0.0))


def _reviewers(
    users: Sequence[int],
    user_ids: Sequence[str],
    n_train: Sequence[int],
    medians: NDArray[np.float64],
    missing: NDArray[np.float32],
) -> pa.Table:
    """Return the reviewers in the order of their numbers."""
    columns = [range(len(users)), user_ids, users, n_train, medians, missing]
    kinds = [pa.int32(), pa.string(), pa.int32(), pa.int32(), pa.float64(), pa.float32()]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    names = [column.name for column in PANEL.columns]
    return pa.table(dict(zip(names, arrays, strict=True)))


def _pooled(collected: CollectedPool) -> pa.Table:
    pool = collected.pool
    return _reviewers(
        pool.users.tolist(), collected.user_ids, collected.n_train, collected.medians, pool.missing
    )


def _values(spark: SparkSession, pool: ReviewerPool, items: pa.Table) -> DataFrame:
    """Return the pool's ratings, a row each, in the order of reviewers and items."""
    numbers = np.repeat(np.arange(len(pool.users), dtype=np.int32), np.diff(pool.ends))
    columns: dict[str, Any] = {
        "feature": numbers,
        "item_id": items.column("item_id").take(pa.array(pool.items)),
        "item": pool.items,
        "value": pool.ratings,
    }
    return spark.createDataFrame(pa.table(columns))
