"""What the footers of Parquet files tell, read by the driver: looking costs less than a job."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession

from spark_rank.data.filesystem import Filesystem
from spark_rank.engine.inventory import READERS


def stored_rows(spark: SparkSession, files: Filesystem, folders: Iterable[str]) -> int:
    """Return how many rows the files in some folders, and below them, hold."""
    paths = [info.path for folder in folders for info in files.below(folder)]
    with ThreadPoolExecutor(READERS) as readers:
        return sum(readers.map(lambda path: _rows(spark, path), paths))


def _rows(spark: SparkSession, path: str) -> int:
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.parquet.hadoop
    conf = spark._jsc.hadoopConfiguration()
    location = jvm.org.apache.hadoop.fs.Path(path)
    reader = hadoop.ParquetFileReader.open(hadoop.util.HadoopInputFile.fromPath(location, conf))
    try:
        return int(reader.getRecordCount())
    finally:
        reader.close()
