"""Features that are other users' ratings: one panel for all, or reviewers drawn for every user."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, FeaturesConfig
from spark_rank.errors import InputDataError
from spark_rank.features.panel import covering_panel, most_active_panel
from spark_rank.features.reference import CollectedPool, activity_group, collect_pool
from spark_rank.reader.recorded import rating_limits
from spark_rank.records.features import FeatureFacts, ReviewerFacts
from spark_rank.stages.feature_tables import (
    feature_table,
    panel_table,
    publish_files,
    squared_radius,
)
from spark_rank.stages.offset_features import publish_offsets, shrunken_offsets, write_offsets
from spark_rank.stages.stage import StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEM_FEATURES, ITEMS, PANEL, REVIEWER_RATINGS
from spark_rank.wording import count_of


def panel_features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Choose the panel that all users share, and fill its matrix."""
    settings = config.features
    blocks = run.read(BLOCKS)
    offsets = shrunken_offsets(settings, run).toArrow().sort_by("item")
    choose = covering_panel if settings.panel_choice == "coverage" else most_active_panel
    panel = choose(blocks, settings.panel_size, len(offsets), _middle(run))
    reviewers = panel_table(
        spark, panel.users, panel.user_ids, panel.n_train, panel.medians, panel.missing
    )
    members = run.write(PANEL, reviewers)
    rows = run.write(ITEM_FEATURES, feature_table(spark, panel.matrix, offsets))
    files = publish_files(run, panel.matrix, offsets)
    return StageResult(
        f"{count_of(rows, 'item')} × {count_of(members, 'reference reviewer')}",
        {PANEL.table: members, ITEM_FEATURES.table: rows},
        FeatureFacts(files=files, squared_radius=squared_radius(panel.matrix)),
    )


def reference_features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Collect the pool that every user's reviewers are drawn from."""
    settings = config.features
    group = activity_group(run.read(BLOCKS), settings.reference_min, settings.reference_max)
    collected = collect_pool(
        group,
        most_reviewers=settings.reference_pool,
        size=settings.reference_size,
        all_ratings=settings.reference_ratings == "all",
        middle=_middle(run),
        seed=config.seed,
    )
    _check_group(settings, collected)
    offsets = shrunken_offsets(settings, run)
    pool = collected.pool
    tables = {
        PANEL.table: run.write(PANEL, _pool_table(spark, collected)),
        REVIEWER_RATINGS.table: run.write(REVIEWER_RATINGS, _values(spark, run, collected)),
        ITEM_FEATURES.table: write_offsets(run, offsets),
    }
    files = publish_offsets(run, offsets.toArrow().sort_by("item"), pool)
    return StageResult(
        f"{_drawn(collected)}: {count_of(len(pool.ratings), 'rating')}",
        tables,
        # every feature is at most the greatest value: no user's items are farther out
        ReviewerFacts(
            files=files,
            squared_radius=pool.size * collected.greatest_value**2,
            group=collected.group_size,
            reviewers=len(pool.users),
        ),
    )


def _middle(run: Run) -> float:
    """Return the middle of the rating scale, which no choice of reviewers moves."""
    low, high = rating_limits(run)
    return (low + high) / 2.0


def _check_group(settings: FeaturesConfig, collected: CollectedPool) -> None:
    if collected.group_size < 2:
        raise InputDataError(
            f"features: {count_of(collected.group_size, 'user')} with "
            f"{settings.reference_min or 1} to "
            f"{settings.reference_max or 'any number of'} ratings: too few to draw "
            "reviewers from: change features.reference_min or features.reference_max"
        )


def _drawn(collected: CollectedPool) -> str:
    pool, group = collected.pool, collected.group_size
    whole = "all" if len(pool.users) == group else f"{len(pool.users):,}"
    of_group = f"{whole} of {count_of(group, 'user')}"
    if pool.size > len(pool.users):
        return f"reviewers are {of_group}, for features.reference_size is {pool.size:,}"
    return f"{count_of(pool.size, 'reviewer')} for every user, drawn from {of_group}"


def _pool_table(spark: SparkSession, collected: CollectedPool) -> DataFrame:
    pool = collected.pool
    return panel_table(
        spark, pool.users.tolist(), collected.user_ids, collected.n_train, collected.medians,
        pool.missing,
    )  # fmt: skip


def _values(spark: SparkSession, run: Run, collected: CollectedPool) -> DataFrame:
    """Return the pool's ratings, a row each, in the order of reviewers and items."""
    pool = collected.pool
    numbers = np.repeat(np.arange(len(pool.users), dtype=np.int32), np.diff(pool.ends))
    columns: dict[str, Any] = {"feature": numbers, "item": pool.items, "value": pool.ratings}
    values = spark.createDataFrame(pa.table(columns))
    items = run.read(ITEMS).select("item", "item_id")
    return values.join(F.broadcast(items), "item")
