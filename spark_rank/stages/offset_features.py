"""The item offset: what every kind of features but factors has beside them, or alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, FeaturesConfig
from spark_rank.features.files import FeatureFiles
from spark_rank.features.offset import item_offsets
from spark_rank.features.pool import ReviewerPool
from spark_rank.records.features import FeatureFacts
from spark_rank.stages.feature_tables import publish_files
from spark_rank.stages.stage import StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEM_FEATURES, ITEMS
from spark_rank.wording import count_of


def offset_features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Take the item offset alone: an item has no features."""
    offsets = shrunken_offsets(config.features, run)
    rows = write_offsets(run, offsets)
    files = publish_offsets(run, offsets.toArrow().sort_by("item"))
    return StageResult(
        f"{count_of(rows, 'item')}, the offset alone",
        {ITEM_FEATURES.table: rows},
        FeatureFacts(files=files, squared_radius=0.0),
    )


def shrunken_offsets(settings: FeaturesConfig, run: Run) -> DataFrame:
    """Return ``item, item_id, offset`` of all items."""
    items = run.read(ITEMS).select("item", "item_id")
    return item_offsets(run.read(BLOCKS), items, settings.offset_shrinkage)


def write_offsets(run: Run, offsets: DataFrame) -> int:
    """Write the table of the items without features that all users share."""
    no_features = F.lit(None).cast("array<float>").alias("features")
    return run.write(ITEM_FEATURES, offsets.select("*", no_features))


def publish_offsets(run: Run, in_order: pa.Table, pool: ReviewerPool | None = None) -> FeatureFiles:
    """Write the files of items without features that all users share."""
    empty = np.empty((len(in_order), 0), dtype=np.float32)
    return publish_files(run, empty, in_order, pool=pool)
