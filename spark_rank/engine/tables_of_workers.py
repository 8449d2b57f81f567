"""Tables whose files workers write and read: what the driver asks Spark for.

`spark_rank.engine.worker_files` is what a worker does. Spark writes the files as it writes any
text, a row a file: through Hadoop's file systems, committed task by task, so that a retry, a
speculative task or a killed executor leaves what it leaves of other tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.data.contracts import Contract, arrow_schema
from spark_rank.data.filesystem import Filesystem, literal
from spark_rank.engine.worker_files import (
    CONTENT,
    FILE_DDL,
    MAGIC,
    Encoding,
    Work,
    decode_files,
    encode_rows,
)

# as Spark names the codecs, as pyarrow does
_CODECS = {"uncompressed": "none", "lz4raw": "lz4", "lz4_raw": "lz4"}
_AS_WRITTEN, _AS_KEPT = ".txt", ".parquet"


@dataclass(frozen=True)
class WorkerTable:
    """Rows under a contract that workers make, as the files that hold them."""

    frame: DataFrame

    def union(self, other: WorkerTable) -> WorkerTable:
        """Return the rows of both."""
        return WorkerTable(self.frame.unionByName(other.frame))


Made = DataFrame | WorkerTable


def worker_table(source: DataFrame, work: Work, contract: Contract) -> WorkerTable:
    """Return what `work` makes of the batches of `source`: the contract's columns in order."""
    spark = source.sparkSession
    codec = str(spark.conf.get("spark.sql.parquet.compression.codec", "snappy")).lower()
    encoding = Encoding(
        arrow_schema(contract.columns),
        contract.version,
        _CODECS.get(codec, codec),
        tuple(column.parquet_path for column in contract.columns if not column.varied),
        {
            # by these Spark knows its own tables, and finds the columns' comments
            "org.apache.spark.version": spark.version,
            "org.apache.spark.sql.parquet.row.metadata": contract.schema().json(),
        },
    )
    return WorkerTable(
        source.mapInArrow(partial(encode_rows, work=work, encoding=encoding), FILE_DDL)
    )


def write_table(
    made: Made,
    contract: Contract,
    files: Filesystem,
    folder: str,
    partition_by: Sequence[str] = (),
) -> None:
    """Write a table into a folder, in the place of what is there."""
    if isinstance(made, WorkerTable):
        _write_files(made.frame, contract, files, folder)
    else:
        contract.writer(made).partitionBy(*partition_by).parquet(folder)


def _write_files(frame: DataFrame, contract: Contract, files: Filesystem, folder: str) -> None:
    """Write every value of the column `file` as a file of its own."""
    # bytes stay what they are in a string, and the end of the line is the end of the file
    as_text = frame.select(F.col("file").cast("string")).write.mode("overwrite")
    as_text.option("lineSep", MAGIC.decode()).option("compression", "none").option(
        "maxRecordsPerFile", 1
    ).text(folder)
    found = files.below(folder)
    for info in found:
        if info.size:
            files.move(info.path, info.path.removesuffix(_AS_WRITTEN) + _AS_KEPT)
        else:
            files.delete(info.path)  # of a job without a row
    if not any(info.size for info in found):
        nothing = frame.sparkSession.createDataFrame([], contract.schema())
        nothing.coalesce(1).write.mode("overwrite").parquet(folder)


def whole_files(spark: SparkSession, folders: Sequence[str]) -> DataFrame:
    """Return the files below some folders as bytes, and their partition columns."""
    return spark.read.format("binaryFile").load([literal(folder) for folder in folders])


def table_from_files(
    source: DataFrame, columns: Sequence[str], work: Work, contract: Contract
) -> WorkerTable:
    """Return what `work` makes of some columns of Parquet files, found by `whole_files`."""
    return worker_table(source.select(CONTENT), _reading(source, columns, work), contract)


def rows_from_files(source: DataFrame, columns: Sequence[str], work: Work, made: str) -> DataFrame:
    """Return the same as rows of Spark, of columns `made` in DDL: for what is few."""
    return source.select(CONTENT).mapInArrow(_reading(source, columns, work), made)


def _reading(source: DataFrame, columns: Sequence[str], work: Work) -> Work:
    rows = int(str(source.sparkSession.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")))
    return partial(decode_files, work=work, columns=tuple(columns), rows=rows)
