"""features: what items look like to a learner, as Parquet and as memory-mapped files."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import Config
from spark_rank.data.tables import BLOCKS, ITEM_FEATURES, ITEMS, PANEL
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.errors import InputDataError
from spark_rank.features.factors import Factors, learn_factors, most_users, sample_users
from spark_rank.features.files import FeatureFiles, write_files
from spark_rank.features.offset import item_offsets
from spark_rank.features.panel import Panel, most_active_panel

FILES = "feature_files"


def features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Make the item features from training ratings alone."""
    make = _factor_features if config.features.kind == "factors" else _panel_features
    return make(config, spark, run)


def distribute_files(spark: SparkSession, run: Run) -> FeatureFiles:
    """Put the feature files of a run onto every node that works for it."""
    record = run.record("features") or {}
    files = FeatureFiles.from_record(record["facts"]["files"])
    for file in files.all():
        spark.sparkContext.addFile(run.files.uri(run.path(f"{FILES}/{file.name}")))
    return files


def _factor_features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    settings = config.features
    items = run.read(ITEMS).select("item", "item_id").orderBy("item").toArrow()
    data = sample_users(
        run.read(BLOCKS),
        n_items=len(items),
        share=settings.user_share,
        max_ratings=settings.max_ratings,
        max_users=most_users(settings.rank),
        seed=config.seed,
    )
    if len(data.ratings) == 0:
        raise InputDataError(
            "features: the sample of users has no training rating: raise features.user_share or "
            "features.max_ratings"
        )
    found = learn_factors(
        data, rank=settings.rank, rounds=settings.rounds, seed=config.seed, progress=_say_round
    )
    offsets = items.append_column("offset", pa.array(found.offset))
    rows = run.write(ITEM_FEATURES, _feature_table(spark, found.matrix, offsets))
    files = _write_files(run, found.matrix, found.prior, offsets)
    return StageResult(
        f"{rows:,} items × {settings.rank} factors from {found.n_ratings:,} training ratings of "
        f"{found.n_users:,} users, noise {found.noise:.3f}",
        {ITEM_FEATURES.table: rows},
        {"files": files.to_record(), **_factor_facts(found)},
    )


def _factor_facts(found: Factors) -> dict[str, Any]:
    return {
        "users": found.n_users,
        "ratings": found.n_ratings,
        "noise": found.noise,
        "spread": found.spread,
    }


def _say_round(number: int, noise: float) -> None:
    # a terminal's progress line is overwritten by the next
    if number % 5 == 0:
        print(f"[features] round {number}, noise {noise:.4f}", file=sys.stderr, flush=True)


def _panel_features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    settings = config.features
    blocks, items = run.read(BLOCKS), run.read(ITEMS).select("item", "item_id")
    offsets = item_offsets(blocks, items, settings.offset_shrinkage).orderBy("item").toArrow()
    panel = most_active_panel(blocks, settings.panel_size, len(offsets))
    members = run.write(PANEL, _panel_table(spark, panel))
    rows = run.write(ITEM_FEATURES, _feature_table(spark, panel.matrix, offsets))
    nothing_expected = np.empty((0, panel.matrix.shape[1]), dtype=np.float32)
    files = _write_files(run, panel.matrix, nothing_expected, offsets)
    return StageResult(
        f"{rows:,} items × {members:,} reference reviewers",
        {PANEL.table: members, ITEM_FEATURES.table: rows},
        {"files": files.to_record()},
    )


def _panel_table(spark: SparkSession, panel: Panel) -> DataFrame:
    table = pa.table(
        {
            "feature": pa.array(range(len(panel.users)), pa.int32()),
            "user_id": pa.array(panel.user_ids, pa.string()),
            "user": pa.array(panel.users, pa.int32()),
            "n_train": pa.array(panel.n_train, pa.int32()),
            "median": pa.array(panel.medians, pa.float64()),
        }
    )
    return spark.createDataFrame(table)


def _feature_table(
    spark: SparkSession, matrix: NDArray[np.float32], offsets: pa.Table
) -> DataFrame:
    n_items, width = matrix.shape
    ends = pa.array(np.arange(0, (n_items + 1) * width, width), pa.int32())
    vectors = pa.ListArray.from_arrays(ends, pa.array(matrix.ravel()))
    return spark.createDataFrame(offsets.append_column("features", vectors))


def _write_files(
    run: Run, matrix: NDArray[np.float32], prior: NDArray[np.float32], offsets: pa.Table
) -> FeatureFiles:
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        files = write_files(
            Path(folder),
            matrix,
            offsets.column("offset").to_numpy(),
            prior,
            offsets.column("item_id").to_pylist(),
        )
        for file in files.all():
            run.files.upload(Path(folder) / file.name, run.path(f"{FILES}/{file.name}"))
    return files


def _deciding_settings(config: Config) -> dict[str, Any]:
    """Return the keys that the chosen kind reads; others may change without a new run."""
    settings = config.features
    names = {
        "panel": ("kind", "panel_size", "offset_shrinkage"),
        "factors": ("kind", "rank", "rounds", "user_share", "max_ratings"),
    }[settings.kind]
    return {name: getattr(settings, name) for name in names}


STAGE = Stage(
    name="features",
    run=features,
    settings=_deciding_settings,
    needs=lambda config: ("prepare", "ingest"),
)
