"""Few files of sensible size: what many tasks have written is put together before it is listed.

Tasks are as many as keep all cores busy, and each writes a file. Here the driver appends Parquet
files to each other, in the order of their names: their row groups are copied as they are, so that
no value is decoded, whoever reads can still take a file in parts, and the bytes follow from those
of the files alone. The driver reads every file for its checksum anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession

from spark_rank.session.files import FileInfo
from spark_rank.session.filesystem import Filesystem
from spark_rank.store.inventory import READERS

# what Hadoop's and Spark's defaults take for one block and one task
SENSIBLE = 128 * 2**20
# so many small files hurt nobody, and a reader can begin with as many tasks
FEW = 16


def join_small_files(spark: SparkSession, files: Filesystem, folder: str) -> None:
    """Append the Parquet files of a folder to each other, if they are many and small."""
    found = files.below(folder)
    groups = joined_groups([info.size for info in found])
    with ThreadPoolExecutor(READERS) as threads:
        own = [[found[place] for place in group] for group in groups if len(group) > 1]
        list(threads.map(lambda group: _join(spark, files, folder, group), own))


def joined_groups(sizes: Sequence[int]) -> list[list[int]]:
    """Return which files become one: places in a row, of much the same bytes in every group.

    There are as many groups as hold `SENSIBLE` bytes each, but not less than `FEW`.
    """
    total = sum(sizes)
    count = max(FEW, -(-total // SENSIBLE))
    if len(sizes) <= count:
        return [[place] for place in range(len(sizes))]
    groups: list[list[int]] = [[] for _ in range(count)]
    before = 0
    for place, size in enumerate(sizes):
        # by the middle of the file; files without a byte go by their number
        share = (2 * before + size) / (2 * total) if total else place / len(sizes)
        groups[int(share * count)].append(place)
        before += size
    return [group for group in groups if group]


def _join(spark: SparkSession, files: Filesystem, folder: str, group: Sequence[FileInfo]) -> None:
    names = [info.path.rpartition("/")[2] for info in group]
    _append_all(spark, [info.path for info in group], f"{folder}/joined-{names[0]}")
    for info in group:
        files.delete(info.path)


def _append_all(spark: SparkSession, sources: Sequence[str], target: str) -> None:
    """Write a Parquet file of the row groups of others, which have the same columns."""
    jvm: Any = spark._jvm
    parquet = jvm.org.apache.parquet.hadoop
    conf = spark._jsc.hadoopConfiguration()
    inputs = [parquet.util.HadoopInputFile.fromPath(_path(jvm, path), conf) for path in sources]
    first = parquet.ParquetFileReader.open(inputs[0])
    try:
        told = first.getFooter().getFileMetaData()
    finally:
        first.close()
    output = parquet.util.HadoopOutputFile.fromPath(_path(jvm, target), conf)
    mode = parquet.ParquetFileWriter.Mode.CREATE
    writer = parquet.ParquetFileWriter(output, told.getSchema(), mode, SENSIBLE, 0)
    writer.start()
    for source in inputs:
        writer.appendFile(source)
    writer.end(told.getKeyValueMetaData())


def _path(jvm: Any, path: str) -> Any:
    return jvm.org.apache.hadoop.fs.Path(path)
