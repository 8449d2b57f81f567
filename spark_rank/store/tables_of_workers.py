"""Tables whose files workers write and read: what the driver asks Spark for.

`spark_rank.store.worker_files` is what a worker does. Spark writes the files as it writes any
text, a row a file: through Hadoop's file systems, committed task by task, so that a retry, a
speculative task or a killed executor leaves what it leaves of other tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.session.filesystem import FileInfo, Filesystem, literal
from spark_rank.session.session import runtime_setting
from spark_rank.session.workers import by_workers
from spark_rank.store.inventory import READERS
from spark_rank.store.worker_files import (
    CONTENT,
    FILES_DDL,
    MAGIC,
    Encoding,
    ManyWork,
    SumUp,
    Work,
    decode_files,
    encode_tables,
    of_one_table,
)
from spark_rank.tables.contract import Contract, arrow_schema

# as Spark names the codecs, as pyarrow does
_CODECS = {"uncompressed": "none", "lz4raw": "lz4", "lz4_raw": "lz4"}
_AS_WRITTEN, _AS_KEPT = ".txt", ".parquet"
_NOT_PARTED: Mapping[str, str] = MappingProxyType({})
_NOT_SUMMED_UP: Mapping[str, SumUp] = MappingProxyType({})


@dataclass(frozen=True)
class WorkerTable:
    """Rows under a contract that workers make, as the files that hold them.

    With `parted_by` there is a folder for every value of that column.
    """

    frame: DataFrame
    parted_by: str | None = None

    def union(self, other: WorkerTable) -> WorkerTable:
        """Return the rows of both."""
        return WorkerTable(self.frame.unionByName(other.frame), self.parted_by)


@dataclass(frozen=True)
class WorkerTables:
    """Tables that workers make in one pass, by name, and the files that hold them.

    `parted_by` has the column of those with a folder for every value.
    """

    frame: DataFrame
    contracts: Mapping[str, Contract]
    parted_by: Mapping[str, str]


Made = DataFrame | WorkerTable


def worker_table(
    source: DataFrame,
    work: Work,
    contract: Contract,
    parted_by: str | None = None,
    summed_up: SumUp | None = None,
) -> WorkerTable:
    """Return what `work` makes of the batches of `source`: the contract's columns in order.

    With `summed_up`, every file's footer tells what that makes of its rows
    (`footers.stored_summaries`); only of tables that are parted.
    """
    name = contract.table
    parted = {} if parted_by is None else {name: parted_by}
    summaries = {} if summed_up is None else {name: summed_up}
    named = partial(of_one_table, work=work, name=name)
    made = worker_tables(source, named, [contract], parted, summaries)
    return WorkerTable(made.frame, parted_by)


def worker_tables(
    source: DataFrame,
    work: ManyWork,
    contracts: Sequence[Contract],
    parted_by: Mapping[str, str] = _NOT_PARTED,
    summed_up: Mapping[str, SumUp] = _NOT_SUMMED_UP,
) -> WorkerTables:
    """Return the tables that `work` makes of the batches of `source`, some parted or summed up."""
    spark = source.sparkSession
    encodings = {
        each.table: _encoding(spark, each, parted_by.get(each.table), summed_up.get(each.table))
        for each in contracts
    }
    if not summed_up.keys() <= parted_by.keys():
        # files of others may be joined later, and one footer would be all that is left
        raise ValueError("only of tables with a folder for every value footers are kept")
    encode = partial(encode_tables, work=work, encodings=encodings)
    by_name = {each.table: each for each in contracts}
    return WorkerTables(by_workers(source, encode, FILES_DDL), by_name, parted_by)


def _encoding(
    spark: SparkSession, contract: Contract, parted_by: str | None, summed_up: SumUp | None
) -> Encoding:
    codec = str(spark.conf.get("spark.sql.parquet.compression.codec", "snappy")).lower()
    stored = replace(
        contract, columns=tuple(each for each in contract.columns if each.name != parted_by)
    )
    return Encoding(
        arrow_schema(stored.columns),
        stored.version,
        _CODECS.get(codec, codec),
        tuple(column.parquet_path for column in stored.columns if not column.varied),
        {
            # by these Spark knows its own tables, and finds the columns' comments
            "org.apache.spark.version": spark.version,
            "org.apache.spark.sql.parquet.row.metadata": stored.schema().json(),
        },
        summed_up,
        parted_by,
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
        parts = () if made.parted_by is None else (made.parted_by,)
        if parts != tuple(partition_by):
            raise ValueError(f"a table by {parts} is to be written by {partition_by}")
        _write_files(made.frame.withColumnRenamed("part", *parts) if parts else made.frame,
                     folder, *parts)  # fmt: skip
        if not _name_files(files, {folder: folder}) and not parts:
            _write_nothing(made.frame, contract, folder)
    else:
        contract.writer(made).partitionBy(*partition_by).parquet(folder)


def write_tables(made: WorkerTables, files: Filesystem, folder: str) -> dict[str, str]:
    """Write tables into folders below `folder`; return where each is, by name."""
    _write_files(made.frame, folder, "table", *(("part",) if made.parted_by else ()))
    places = {name: f"{folder}/{name}" for name in made.contracts}
    for name, contract in made.contracts.items():
        column, source = made.parted_by.get(name), f"{folder}/table={name}"
        moves = {source: places[name]}
        if made.parted_by:  # of other tables all files are in one folder of theirs
            own = places[name] if column is None else f"{places[name]}/{column}"
            moves = {f"{source}/{part}": own + ("" if column is None else part.removeprefix("part"))
                     for part in files.names(source)}  # fmt: skip
        if not _name_files(files, moves):
            _write_nothing(made.frame, contract, places[name])
    return places


def _write_files(frame: DataFrame, folder: str, *partition_by: str) -> None:
    """Write every value of the column `file` as a file of its own."""
    # bytes stay what they are in a string, and the end of the line is the end of the file
    text = frame.withColumn("file", F.col("file").cast("string"))
    if partition_by:
        # Spark would sort by these alone: a task's files are to be in the order of its rows
        text = text.sortWithinPartitions(*partition_by, "number")
    writer = text.select(*partition_by, "file").write.mode("overwrite").partitionBy(*partition_by)
    writer.options(lineSep=MAGIC.decode(), compression="none", maxRecordsPerFile=1).text(folder)


def _name_files(files: Filesystem, moves: Mapping[str, str]) -> bool:
    """Bring files from folders to others under the name of Parquet; tell whether any has rows."""
    found = [(info, files.qualified(source), target)
             for source, target in moves.items() for info in files.below(source)]  # fmt: skip

    def bring(info: FileInfo, source: str, target: str) -> None:
        if info.size:
            path = info.path.removeprefix(source).removesuffix(_AS_WRITTEN)
            files.move(info.path, f"{target}{path}{_AS_KEPT}")
        else:
            files.delete(info.path)  # of a job without a row

    with ThreadPoolExecutor(READERS) as threads:
        list(threads.map(lambda each: bring(*each), found))
    return any(info.size for info, *_ in found)


def _write_nothing(made: DataFrame, contract: Contract, folder: str) -> None:
    """Write a table without a row, which tells its columns."""
    contract.writer(contract.nothing(made.sparkSession).coalesce(1)).parquet(folder)


@contextmanager
def a_task_a_file(spark: SparkSession) -> Iterator[None]:
    """Read every file, or part of a large one, in a task of its own for a block of code.

    Spark packs them by their bytes, but the work is in the users: so all cores work to the end,
    and progress is visible. What costs a task to open is alone in it.
    """
    whole = spark.conf.get("spark.sql.files.maxPartitionBytes")
    with runtime_setting(spark, "spark.sql.files.openCostInBytes", str(whole)):
        yield


def whole_files(spark: SparkSession, folders: Sequence[str]) -> DataFrame:
    """Return the files below some folders as bytes, and their partition columns."""
    return spark.read.format("binaryFile").load([literal(folder) for folder in folders])


def table_from_files(
    source: DataFrame, columns: Sequence[str], work: Work, contract: Contract
) -> WorkerTable:
    """Return what `work` makes of some columns of Parquet files, found by `whole_files`.

    Columns of their partitions may be among them.
    """
    named = partial(of_one_table, work=work, name=contract.table)
    return WorkerTable(tables_from_files(source, columns, named, [contract]).frame)


def tables_from_files(
    source: DataFrame, columns: Sequence[str], work: ManyWork, contracts: Sequence[Contract]
) -> WorkerTables:
    """Return the tables that `work` makes of some columns of Parquet files."""
    rows = int(str(source.sparkSession.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")))
    read = partial(decode_files, work=work, columns=tuple(columns), rows=rows)
    beside = [name for name in columns if name in source.columns]
    return worker_tables(source.select(CONTENT, *beside), read, contracts)
