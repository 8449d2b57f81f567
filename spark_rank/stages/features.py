"""features: the reference panel and the item offset, as Parquet and as memory-mapped files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import Config
from spark_rank.data.tables import BLOCKS, ITEM_FEATURES, ITEMS, PANEL
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.features.files import FeatureFiles, write_files
from spark_rank.features.offset import item_offsets
from spark_rank.features.panel import Panel, most_active_panel

FILES = "feature_files"


def features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Make the item features from training ratings alone."""
    settings = config.features
    blocks, items = run.read(BLOCKS), run.read(ITEMS).select("item", "item_id")
    offsets = item_offsets(blocks, items, settings.offset_shrinkage).orderBy("item").toArrow()
    panel = most_active_panel(blocks, settings.panel_size, len(offsets))
    members = run.write(PANEL, _panel_table(spark, panel))
    rows = run.write(ITEM_FEATURES, _feature_table(spark, panel, offsets))
    files = _write_files(run, panel, offsets)
    return StageResult(
        f"{rows:,} items × {members:,} reference reviewers",
        {"panel": members, "item_features": rows},
        {"files": files.to_record()},
    )


def distribute_files(spark: SparkSession, run: Run) -> FeatureFiles:
    """Put the feature files of a run onto every node that works for it."""
    record = run.record("features") or {}
    files = FeatureFiles.from_record(record["facts"]["files"])
    for file in (files.matrix, files.offset, files.item_ids):
        spark.sparkContext.addFile(run.files.uri(run.path(f"{FILES}/{file.name}")))
    return files


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


def _feature_table(spark: SparkSession, panel: Panel, offsets: pa.Table) -> DataFrame:
    n_items, width = panel.matrix.shape
    ends = pa.array(np.arange(0, (n_items + 1) * width, width), pa.int32())
    vectors = pa.ListArray.from_arrays(ends, pa.array(panel.matrix.ravel()))
    return spark.createDataFrame(offsets.append_column("features", vectors))


def _write_files(run: Run, panel: Panel, offsets: pa.Table) -> FeatureFiles:
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        files = write_files(
            Path(folder),
            panel.matrix,
            offsets.column("offset").to_numpy(),
            offsets.column("item_id").to_pylist(),
        )
        for file in (files.matrix, files.offset, files.item_ids):
            run.files.upload(Path(folder) / file.name, run.path(f"{FILES}/{file.name}"))
    return files


STAGE = Stage(
    name="features",
    run=features,
    settings=lambda config: config.features,
    needs=lambda config: ("prepare", "ingest"),
)
