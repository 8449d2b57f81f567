"""Makes item features from the training parts of blocks: one function per `features.kind`.

Every function takes blocks (``user, user_id, items, ratings, n_train``) and items (``item,
item_id``) and returns the arrays of all items. `feature_tables` and
`spark_rank.features.files.write_files` turn them into tables and files.
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
from pyspark.sql import functions as F

from spark_rank.errors import InputDataError
from spark_rank.features.als import learn_als_factors
from spark_rank.features.choice import Choice, learn_choice
from spark_rank.features.content import Content, encoded
from spark_rank.features.factor_model import most_users
from spark_rank.features.factors import Factors, learn_factors, sample_users
from spark_rank.features.files import write_files
from spark_rank.features.given import chunks, match_vectors, scaled, standard_scale
from spark_rank.features.offset import item_offsets
from spark_rank.features.panel import covering_panel, most_active_panel
from spark_rank.features.pool import ReviewerPool
from spark_rank.features.reference import CollectedPool, activity_group, collect_pool
from spark_rank.features.shown import learn_shown
from spark_rank.records.features import (
    FactorFacts,
    FeatureFacts,
    FeatureFiles,
    GivenFacts,
    ReviewerFacts,
    ShownFacts,
)
from spark_rank.tables.contracts import ITEM_FEATURES, PANEL, REVIEWER_RATINGS
from spark_rank.wording import count_of

_ROWS_AT_ONCE = 1 << 16
# ratings of the users from whom the model of choices is learned, at most: more of them would take
# longer than the factors themselves
_CHOICES = 4_000_000
# bytes of the table of items per task: Spark sends a task as one message of at most 128 MB
_TASK_BYTES = 1 << 26
Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class FeatureArrays:
    """The features of all items, in the order of their numbers.

    `items` has ``item, item_id, offset``. `matrix` has no columns if users share no features,
    `prior` no rows if there is no prior. `squared_radius` bounds ‖x‖² over items and users.
    `reviewers` has the columns of the table `panel`, `choice` tells what users choose; `kind` makes
    the facts.
    """

    items: pa.Table
    matrix: NDArray[np.float32]
    prior: NDArray[np.float32]
    squared_radius: float
    pool: ReviewerPool | None = None
    reviewers: pa.Table | None = None
    choice: Choice | None = None
    kind: Callable[..., FeatureFacts] = FeatureFacts

    @classmethod
    def shared(
        cls,
        items: pa.Table,
        matrix: NDArray[np.float32],
        prior: NDArray[np.float32] | None = None,
        **others: Any,
    ) -> FeatureArrays:
        """Return features that all users share; without `prior` they have no prior of users."""
        if prior is None:
            prior = np.empty((0, matrix.shape[1]), dtype=np.float32)
        return cls(items, matrix, prior, squared_radius(matrix), **others)

    def write(self, folder: Path) -> FeatureFiles:
        """Write the feature files, which workers map into memory, to a local folder."""
        return write_files(
            folder,
            self.matrix,
            self.items.column("offset").to_numpy(),
            self.prior,
            self.items.column("item_id").to_pylist(),
            self.pool,
            self.choice,
        )

    def facts(self, files: FeatureFiles) -> FeatureFacts:
        """Return the facts about the features; `files` are those that `write` returned."""
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
    choices: bool = True,
    propensities: bool = False,
    content: DataFrame | None = None,
    progress: Progress | None = None,
) -> FeatureArrays:
    """Learn item factors, the prior of users and what they choose from a hash sample of the users.

    The sample is `user_share` of the users, or less if it had more than about `max_ratings`.
    Without `choices`, priors do not know who rated what. With `propensities`, the facts say
    what ratings of items shown at random would be. `content` (``item, name, value``) says what the
    items are. `progress` is called with the number of every round and the noise.
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
    columns = None if content is None else content_columns(content, len(in_order))
    data = replace(data, content=None if columns is None else columns.matrix)
    factors = learn_factors(
        data, rank=rank, rounds=rounds, seed=seed, choices=choices, progress=progress
    )
    shown = None
    if propensities:
        shown = learn_shown(data, rank=rank, rounds=rounds, seed=seed, choices=choices)
    choosers = data.beginning(_CHOICES)
    choice = learn_choice(
        choosers.items,
        choosers.ends,
        choosers.n_items,
        scale=float(np.sqrt(factors.noise)),
        seed=seed,
    )
    return replace(_with_factors(in_order, factors, columns, shown), choice=choice)


def content_columns(content: DataFrame, n_items: int) -> Content | None:
    """Return the columns of ``item, name, value``; the order of the rows decides nothing."""
    rows = content.select(F.col("item").alias("place"), "name", "value")
    return encoded(rows.orderBy("name", "value", "place").toArrow(), n_items)


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
    """Learn item factors by MLlib's ALS, and the prior of users, on the executors.

    They are learned from the training ratings of a hash sample of `user_share` of the users, and
    no rating comes to the driver. `progress` is called with the number of every pass over the
    users and the noise.
    """
    offsets = item_offsets(blocks, items, shrinkage).toArrow().sort_by("item")
    factors = learn_als_factors(
        blocks,
        offsets.column("offset").to_numpy(),
        rank=rank,
        rounds=rounds,
        regularization=regularization,
        share=user_share,
        seed=seed,
        progress=progress,
    )
    return _with_factors(offsets.select(["item", "item_id"]), factors)


def _with_factors(
    items: pa.Table,
    factors: Factors,
    content: Content | None = None,
    shown: ShownFacts | None = None,
) -> FeatureArrays:
    kind = partial(
        FactorFacts,
        users=factors.n_users,
        ratings=factors.n_ratings,
        noise=factors.noise,
        spread=factors.spread,
        content=() if content is None else content.names,
        shown=shown,
    )
    offsets = items.append_column("offset", pa.array(factors.offset))
    return FeatureArrays.shared(offsets, factors.matrix, factors.prior, kind=kind)


def offset_features(blocks: DataFrame, items: DataFrame, *, shrinkage: float) -> FeatureArrays:
    """Return the item offset without any features."""
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
    """Choose the reviewers whose ratings, minus `middle`, are the features of all users."""
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

    It is a sample of the users with `least` to `most` ratings. Features are their training
    ratings, with `all_ratings` the held-out ones too, minus `middle`.
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
        # no feature exceeds the greatest value, so this bounds ‖x‖² for all users
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
    """Return given vectors ``item_id, features`` as the features, and the item offset.

    With `standard` every feature is scaled to mean 0 and standard deviation 1. An item without a
    vector gets zeros.
    """
    matched, facts = match_vectors(items, vectors, "given")
    scale = standard_scale(matched, facts) if standard else None
    parts = [part for _, part in chunks(scaled(matched, facts, scale), facts)]
    offsets = item_offsets(blocks, items, shrinkage).toArrow().sort_by("item")
    kind = partial(GivenFacts, width=facts.width, items_without=facts.missing)
    return FeatureArrays.shared(offsets, np.concatenate(parts), kind=kind)


def feature_tables(spark: SparkSession, arrays: FeatureArrays) -> dict[str, DataFrame]:
    """Return the table `item_features`, and those of reviewers: `panel`, `reviewer_ratings`."""
    tables = {ITEM_FEATURES.table: item_table(spark, arrays.items, arrays.matrix)}
    if arrays.reviewers is not None:
        tables[PANEL.table] = spark.createDataFrame(arrays.reviewers).coalesce(1)
    if arrays.pool is not None:
        tables[REVIEWER_RATINGS.table] = _values(spark, arrays.pool, arrays.items)
    return tables


def item_table(spark: SparkSession, items: pa.Table, matrix: NDArray[np.float32]) -> DataFrame:
    """Return ``item, item_id, offset, features``; if `matrix` has no columns, features are null."""
    n_items, width = matrix.shape
    ends = pa.array(np.arange(0, (n_items + 1) * width, width) if width else [0], pa.int32())
    vectors = pa.ListArray.from_arrays(ends, pa.array(matrix.ravel()))
    if width == 0:
        vectors = pa.nulls(n_items, vectors.type)
    table = spark.createDataFrame(items.append_column("features", vectors))
    # one file for a small table, on any number of cores; a task carries its rows
    return table.coalesce(-(-matrix.nbytes // _TASK_BYTES) or 1)


def squared_radius(matrix: NDArray[np.float32]) -> float:
    """Return the largest ‖x‖² of the rows, computed a block of rows at a time."""
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
    """Return the table of reviewers in the order of their numbers."""
    columns = [range(len(users)), user_ids, users, n_train, medians, missing]
    types = [pa.int32(), pa.string(), pa.int32(), pa.int32(), pa.float64(), pa.float32()]
    arrays = [
        pa.array(values, arrow_type) for values, arrow_type in zip(columns, types, strict=True)
    ]
    names = [column.name for column in PANEL.columns]
    return pa.table(dict(zip(names, arrays, strict=True)))


def _pooled(collected: CollectedPool) -> pa.Table:
    pool = collected.pool
    return _reviewers(
        pool.users.tolist(), collected.user_ids, collected.n_train, collected.medians, pool.missing
    )


def _values(spark: SparkSession, pool: ReviewerPool, items: pa.Table) -> DataFrame:
    """Return the pool's ratings, one per row, sorted by reviewer and item."""
    numbers = np.repeat(np.arange(len(pool.users), dtype=np.int32), np.diff(pool.ends))
    columns: dict[str, Any] = {
        "feature": numbers,
        "item_id": items.column("item_id").take(pa.array(pool.items)),
        "item": pool.items,
        "value": pool.ratings,
    }
    return spark.createDataFrame(pa.table(columns))
