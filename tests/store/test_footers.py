"""Rows by footers are the rows that are read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark_rank.session.filesystem import Filesystem
from spark_rank.store.footers import read_footer, stored_range, stored_rows


def test_rows_of_all_files_in_all_folders(spark: SparkSession, tmp_path: Path) -> None:
    files = Filesystem(spark)
    frame = spark.range(0, 1_000, 1, 3).selectExpr("id", "id % 4 as bucket")
    frame.write.partitionBy("bucket").parquet(str(tmp_path / "parted"))
    frame.where("id < 0").write.parquet(str(tmp_path / "empty"))
    frame.where("id < 7").write.parquet(str(tmp_path / "flat"))
    folders = [files.qualified(str(tmp_path / name)) for name in ("parted", "empty", "flat")]
    assert [stored_rows(files, [folder]) for folder in folders] == [1_000, 0, 7]
    assert stored_rows(files, [*folders, f"{folders[0]}/nothing"]) == 1_007


def test_the_range_of_a_column_over_row_groups_and_files(
    tmp_path: Path, spark: SparkSession
) -> None:
    files = Filesystem(spark)
    table = pa.table({"x": [3.0, None, -1.5, 2.0, None, None], "y": pa.nulls(6, pa.float32()),
                      "names": list("abcdef")})  # fmt: skip
    for place, part in enumerate((table, table.slice(0, 2), table.slice(4))):
        pq.write_table(part, tmp_path / f"{place}.parquet", row_group_size=2)
    folder = files.qualified(str(tmp_path))
    assert stored_range(files, folder, "x") == (-1.5, 3.0)
    assert stored_range(files, folder, "y") is None
    assert stored_range(files, folder, "z") is None
    assert stored_range(files, f"{folder}/nothing", "x") is None
    spark.range(-5, 9, 1, 3).selectExpr("cast(id as float) as x").write.parquet(f"{folder}/by")
    assert stored_range(files, f"{folder}/by", "x") == (-5.0, 8.0)


def test_a_footer_larger_than_most_is_read_whole(tmp_path: Path, spark: SparkSession) -> None:
    wide = pa.table({f"a column with the number {n}": [1, 2] for n in range(2000)})
    pq.write_table(wide, tmp_path / "wide.parquet")
    files = Filesystem(spark)
    (info,) = files.below(files.qualified(str(tmp_path)))
    footer = read_footer(files, info)
    assert footer.serialized_size > 1 << 16
    assert (footer.num_columns, footer.num_rows) == (2000, 2)
