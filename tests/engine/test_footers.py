"""Rows by footers are the rows that are read."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from spark_rank.data.filesystem import Filesystem
from spark_rank.engine.footers import stored_rows


def test_rows_of_all_files_in_all_folders(spark: SparkSession, tmp_path: Path) -> None:
    files = Filesystem(spark)
    frame = spark.range(0, 1_000, 1, 3).selectExpr("id", "id % 4 as bucket")
    frame.write.partitionBy("bucket").parquet(str(tmp_path / "parted"))
    frame.where("id < 0").write.parquet(str(tmp_path / "empty"))
    frame.where("id < 7").write.parquet(str(tmp_path / "flat"))
    folders = [files.qualified(str(tmp_path / name)) for name in ("parted", "empty", "flat")]
    assert [stored_rows(spark, files, [folder]) for folder in folders] == [1_000, 0, 7]
    assert stored_rows(spark, files, [*folders, f"{folders[0]}/nothing"]) == 1_007
