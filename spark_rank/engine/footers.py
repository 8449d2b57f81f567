"""What the footers of Parquet files tell, read by the driver: looking costs less than a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from spark_rank.data.filesystem import Filesystem
from spark_rank.engine.inventory import READERS


def stored_rows(spark: SparkSession, files: Filesystem, folders: Iterable[str]) -> int:
    """Return how many rows the files in some folders, and below them, hold."""
    paths = [info.path for folder in folders for info in files.below(folder)]
    with ThreadPoolExecutor(READERS) as readers:
        return sum(readers.map(lambda path: _rows(spark, path), paths))


@contextmanager
def opened(spark: SparkSession, path: str) -> Iterator[Any]:
    """Open a Parquet file: the JVM's reader has read its footer, and no more."""
    jvm: Any = spark._jvm
    parquet = jvm.org.apache.parquet.hadoop
    location, conf = jvm.org.apache.hadoop.fs.Path(path), spark._jsc.hadoopConfiguration()
    reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(location, conf))
    try:
        yield reader
    finally:
        reader.close()


def _rows(spark: SparkSession, path: str) -> int:
    with opened(spark, path) as reader:
        return int(reader.getRecordCount())
