"""What every kind of features leaves: the table of the items, and the files that workers map."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from spark_rank.errors import ContractError
from spark_rank.features.files import FeatureFiles, distribute_local, write_files
from spark_rank.features.pool import ReviewerPool
from spark_rank.records.features import FeatureFacts
from spark_rank.stages.final_run import FEATURE_FILES
from spark_rank.store.run import Run
from spark_rank.tables.contracts import PANEL

_ROWS_AT_ONCE = 1 << 16


def feature_table(spark: SparkSession, matrix: NDArray[np.float32], offsets: pa.Table) -> DataFrame:
    """Return ``item, item_id, offset`` with the rows of the matrix as features."""
    n_items, width = matrix.shape
    ends = pa.array(np.arange(0, (n_items + 1) * width, width), pa.int32())
    vectors = pa.ListArray.from_arrays(ends, pa.array(matrix.ravel()))
    # one file, on however many cores: a row per item is little
    return spark.createDataFrame(offsets.append_column("features", vectors)).coalesce(1)


def panel_table(
    spark: SparkSession,
    users: Sequence[int],
    user_ids: Sequence[str],
    n_train: Sequence[int],
    medians: NDArray[np.float64],
    missing: NDArray[np.float32],
) -> DataFrame:
    """Return the reviewers in the order of their numbers."""
    columns = [range(len(users)), user_ids, users, n_train, medians, missing]
    kinds = [pa.int32(), pa.string(), pa.int32(), pa.int32(), pa.float64(), pa.float32()]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    names = [column.name for column in PANEL.columns]
    return spark.createDataFrame(pa.table(dict(zip(names, arrays, strict=True))))


def publish_files(
    run: Run,
    matrix: NDArray[np.float32],
    offsets: pa.Table,
    prior: NDArray[np.float32] | None = None,
    pool: ReviewerPool | None = None,
) -> FeatureFiles:
    """Write the files into the run; without a `prior` nothing is expected of any user."""
    if prior is None:
        prior = np.empty((0, matrix.shape[1]), dtype=np.float32)
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        files = write_files(
            Path(folder),
            matrix,
            offsets.column("offset").to_numpy(),
            prior,
            offsets.column("item_id").to_pylist(),
            pool,
        )
        for file in files.all():
            draft = run.draft_path(f"{FEATURE_FILES}/{file.name}")
            run.files.upload(Path(folder) / file.name, draft)
    return files


def distribute_files(spark: SparkSession, run: Run) -> FeatureFiles:
    """Put the feature files of a run onto every node that works for it."""
    files = run.facts(FeatureFacts).files
    there = _on_the_nodes(spark)
    for file in files.all():
        path = run.path(f"{FEATURE_FILES}/{file.name}")
        if not run.files.exists(path):
            raise ContractError(
                f"{path}: the manifest lists this feature file, but it is gone: delete the run's "
                "manifest/features.json and start the same command again: it makes the file anew"
            )
        # Spark refuses the same name from another place, and a name holds the checksum
        if file.name not in there:
            spark.sparkContext.addFile(run.files.uri(path))
    return files


def distribute_draft(spark: SparkSession, run: Run, files: FeatureFiles) -> None:
    """Put feature files of the stage in progress onto every node; drafts do not stay."""
    there = _on_the_nodes(spark)
    wanted = [file for file in files.all() if file.name not in there]
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        for file in wanted:
            draft = run.draft_path(f"{FEATURE_FILES}/{file.name}")
            run.files.download(draft, Path(folder) / file.name)
        distribute_local(spark, Path(folder), wanted)


def _on_the_nodes(spark: SparkSession) -> set[str]:
    """Return the names of the files that the session has put onto the nodes."""
    return {uri.rsplit("/", 1)[-1] for uri in spark.sparkContext.listFiles}


def squared_radius(matrix: NDArray[np.float32]) -> float:
    """Return the largest ‖x‖² of the rows; some of them at a time, for they may be many."""
    starts = range(0, len(matrix), _ROWS_AT_ONCE)
    parts = (matrix[start : start + _ROWS_AT_ONCE].astype(np.float64) for start in starts)
    return float(max(((part**2).sum(axis=1).max() for part in parts), default=0.0))
