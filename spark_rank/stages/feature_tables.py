"""The files of item features that workers map into memory, in the run and on every node."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from spark_rank.errors import ContractError
from spark_rank.features.files import FeatureFiles, distribute_local
from spark_rank.frames.item_features import FeatureArrays
from spark_rank.records.features import FeatureFacts
from spark_rank.stages.final_run import FEATURE_FILES
from spark_rank.store.run import Run


def publish_files(run: Run, arrays: FeatureArrays) -> FeatureFiles:
    """Write the feature files into the run, for workers to map into memory."""
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        files = arrays.write(Path(folder))
        for file in files.all():
            draft = run.draft_path(f"{FEATURE_FILES}/{file.name}")
            run.files.upload(Path(folder) / file.name, draft)
    return files


def distribute_files(spark: SparkSession, run: Run) -> FeatureFiles:
    """Put the feature files of a run onto every node."""
    files = run.facts(FeatureFacts).files
    on_nodes = _on_the_nodes(spark)
    for file in files.all():
        path = run.path(f"{FEATURE_FILES}/{file.name}")
        if not run.files.exists(path):
            raise ContractError(
                f"{path}: the manifest lists this feature file, but it does not exist: delete the "
                "run's manifest/features.json and start the same command again, which makes it anew"
            )
        # Spark refuses a name twice; the same name means the same file, as it contains the checksum
        if file.name not in on_nodes:
            spark.sparkContext.addFile(run.files.uri(path))
    return files


def distribute_draft(spark: SparkSession, run: Run, files: FeatureFiles) -> None:
    """Put copies of the feature files of the stage in progress onto every node."""
    on_nodes = _on_the_nodes(spark)
    missing = [file for file in files.all() if file.name not in on_nodes]
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        for file in missing:
            draft = run.draft_path(f"{FEATURE_FILES}/{file.name}")
            run.files.download(draft, Path(folder) / file.name)
        distribute_local(spark, Path(folder), missing)


def _on_the_nodes(spark: SparkSession) -> set[str]:
    """Return the names of the files that the session has put onto the nodes."""
    return {uri.rsplit("/", 1)[-1] for uri in spark.sparkContext.listFiles}
