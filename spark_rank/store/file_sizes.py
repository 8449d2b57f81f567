"""Joins the many small files of a table into few files of sensible size.

Every task writes a file, and there are enough tasks to keep all cores busy. Here the driver appends
Parquet files to each other, in the order of their names. It copies their row groups as they are: no
value is decoded, readers can still split a file, and the result depends on nothing but the files.
The driver reads every file for its checksum anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession

from spark_rank.session.files import FileInfo
from spark_rank.session.filesystem import Filesystem
from spark_rank.store.inventory import READERS

# bytes of a block by Hadoop's default, and of a task by Spark's
SENSIBLE = 128 * 2**20
# this many small files do no harm, and a reader can begin with as many tasks
FEW = 16


def join_small_files(spark: SparkSession, files: Filesystem, folder: str) -> None:
    """Append the Parquet files of a folder to each other, if they are many and small."""
    infos = files.below(folder)
    groups = joined_groups([info.size for info in infos])
    with ThreadPoolExecutor(READERS) as threads:
        to_join = [[infos[place] for place in group] for group in groups if len(group) > 1]
        list(threads.map(lambda group: _join(spark, files, folder, group), to_join))


def joined_groups(sizes: Sequence[int]) -> list[list[int]]:
    """Return groups of neighbouring files to join, by position, with about equal bytes per group.

    There is a group per `SENSIBLE` bytes, but at least `FEW` groups.
    """
    total = sum(sizes)
    count = max(FEW, -(-total // SENSIBLE))
    if len(sizes) <= count:
        return [[place] for place in range(len(sizes))]
    groups: list[list[int]] = [[] for _ in range(count)]
    before = 0
    for place, size in enumerate(sizes):
        # by the middle of the file; if all files are empty, by their number
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
    """Write a Parquet file with the row groups of other files, which have the same columns."""
    jvm: Any = spark._jvm
    parquet = jvm.org.apache.parquet.hadoop
    conf = spark._jsc.hadoopConfiguration()
    inputs = [parquet.util.HadoopInputFile.fromPath(_path(jvm, path), conf) for path in sources]
    first = parquet.ParquetFileReader.open(inputs[0])
    try:
        metadata = first.getFooter().getFileMetaData()
    finally:
        first.close()
    output = parquet.util.HadoopOutputFile.fromPath(_path(jvm, target), conf)
    mode = parquet.ParquetFileWriter.Mode.CREATE
    writer = parquet.ParquetFileWriter(output, metadata.getSchema(), mode, SENSIBLE, 0)
    writer.start()
    for source in inputs:
        writer.appendFile(source)
    writer.end(metadata.getKeyValueMetaData())


def _path(jvm: Any, path: str) -> Any:
    return jvm.org.apache.hadoop.fs.Path(path)
