"""Features that come with the data: from the format letor, or from a Parquet file."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.errors import InputDataError
from spark_rank.features.given import (
    VectorFacts,
    chunks,
    match_vectors,
    read_vectors,
    scaled,
    sorted_parts,
    standard_scale,
)
from spark_rank.features.offset import item_offsets
from spark_rank.frames.item_features import FeatureArrays
from spark_rank.records.features import GivenFacts
from spark_rank.session.files import FileInfo
from spark_rank.stages.feature_tables import publish_files
from spark_rank.stages.ingest_inputs import files_of
from spark_rank.stages.stage import StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, GIVEN_FEATURES, ITEM_FEATURES, ITEMS
from spark_rank.wording import count_of


def given_files(config: Config, run: Run) -> list[FileInfo]:
    """Return the files of `features.given`; none if it is not set."""
    path = config.features.given
    return [] if path is None else files_of("features.given", path, run)


def given_features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Scale the vectors and put them in the order of the items; ratings do not change them."""
    vectors, facts = _matched(config, spark, run)
    # kept, because scaling and writing read the vectors of all items twice
    scratch = run.scratch_path("vectors")
    sorted_parts(vectors, facts).write.parquet(scratch)
    kept = spark.read.parquet(scratch)
    scale = standard_scale(kept, facts) if config.features.given_scale == "standard" else None
    table = scaled(kept, facts, scale).join(_offsets(config, run), "item")
    rows = run.write(ITEM_FEATURES, sorted_parts(table, facts))
    written = run.written(ITEM_FEATURES)
    offsets = written.select("item", "item_id", "offset").toArrow().sort_by("item")
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        matrix = _as_matrix(written, facts, Path(folder))
        kind = partial(GivenFacts, width=facts.width, items_without=facts.missing)
        arrays = FeatureArrays.shared(offsets, matrix, kind=kind)
        files = publish_files(run, arrays)
    without = f", {count_of(facts.missing, 'item')} without: zeros" if facts.missing else ""
    return StageResult(
        f"{count_of(rows, 'item')} × {count_of(facts.width, 'given feature')}{without}",
        {ITEM_FEATURES.table: rows},
        arrays.facts(files),
    )


def _matched(config: Config, spark: SparkSession, run: Run) -> tuple[DataFrame, VectorFacts]:
    items = run.read(ITEMS).select("item", "item_id")
    if config.features.given is None:
        table = run.read(GIVEN_FEATURES).select("item_id", "features")
        return match_vectors(items, table, f"table {GIVEN_FEATURES.table}")
    key = f"features.given: {config.features.given}"
    files = [info.path for info in given_files(config, run)]
    for file in files:
        if run.files.head(file, 4) != b"PAR1":
            raise InputDataError(f"{key}: {file} is not a Parquet file")
    return match_vectors(items, read_vectors(spark, files, key), key)


def _offsets(config: Config, run: Run) -> DataFrame:
    """Return ``item, offset``; the offset is 0 in letor, where one user alone has rated an item."""
    if config.features.given is None:
        return run.read(ITEMS).select("item", F.lit(0.0).alias("offset"))
    shrinkage = config.features.offset_shrinkage
    return item_offsets(run.read(BLOCKS), run.read(ITEMS), shrinkage).select("item", "offset")


def _as_matrix(written: DataFrame, facts: VectorFacts, folder: Path) -> NDArray[np.float32]:
    """Return the features as an array on disk, because it may be larger than memory."""
    matrix: NDArray[np.float32] = np.lib.format.open_memmap(
        folder / "given.npy", mode="w+", dtype=np.float32, shape=(facts.items, facts.width)
    )
    for items, rows in chunks(written, facts):
        matrix[items] = rows
    return matrix
