"""Parquet files that workers write and read themselves: to Spark a file is one value of bytes.

A row that goes through Spark is taken apart on the way: from Arrow into the JVM's rows, from these
into Parquet's columns, number by number, and for who reads it all of that backwards. For lists of a
hundred scores it takes longer than to learn what they come from. Here a worker hands over whole
files, which Spark writes and commits as any output (`spark_rank.store.tables_of_workers`), and
takes whole files, which Spark has read from wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from spark_rank.tables.contract import VERSION_COLUMN

Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
# makes batches of several tables, each with the name of its own
ManyWork = Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[str, pa.RecordBatch]]]

SumUp = Callable[[pa.Table], str]

# of what a footer tells of the file's rows
SUMMARY_KEY = "spark_rank.summary"
# the value that a table is parted by is null for tables in one folder; numbers count a task's files
FILES_DDL = "table string, part string, number int, file binary"
CONTENT = "content"
# the last bytes of every Parquet file, which Spark puts behind what it is given
MAGIC = b"PAR1"
# of a file before it is encoded: a worker has one in hand, and the JVM a few copies
FILE_BYTES = 32 << 20
_FILES_SCHEMA = pa.schema(
    [("table", pa.string()), ("part", pa.string()), ("number", pa.int32()), ("file", pa.binary())]
)
_NONE: Mapping[str, pa.DataType] = MappingProxyType({})


@dataclass(frozen=True)
class Encoding:
    """How a table becomes Parquet: columns before the version, codec, what the footer tells.

    With `summed_up` it also tells what that makes of the file's rows. With `parted_by`, a column
    that rows have beside the schema's, no file holds rows with two of its values, or the column.
    """

    schema: pa.Schema
    version: int
    codec: str
    dictionaries: tuple[str, ...]
    told: Mapping[str, str]
    summed_up: SumUp | None = None
    parted_by: str | None = None


def encode_tables(
    batches: Iterator[pa.RecordBatch],
    work: ManyWork,
    encodings: Mapping[str, Encoding],
    file_bytes: int = FILE_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Yield what `work` makes of the batches as files of tables, without their last four bytes.

    What `DataFrame.mapInArrow` calls.
    """
    cuts: dict[tuple[str, str | None], Cut] = {}
    number = count()
    for name, batch in work(batches):
        for part, rows in _parts(batch, encodings[name].parted_by):
            cut = cuts.setdefault((name, part), Cut(file_bytes))
            for table in cut.add(rows):
                yield _one_file(name, part, next(number), encoded(table, encodings[name]))
    for (name, part), cut in cuts.items():
        for table in cut.rest():
            yield _one_file(name, part, next(number), encoded(table, encodings[name]))


def _parts(
    batch: pa.RecordBatch, column: str | None
) -> Iterator[tuple[str | None, pa.RecordBatch]]:
    """Yield the rows with each value of a column, which they are without then."""
    if column is None:
        yield None, batch
        return
    values, rest = batch.column(column), batch.drop_columns([column])
    different = pc.unique(values)
    for value in different:
        yield str(value), rest if len(different) == 1 else rest.filter(pc.equal(values, value))


def of_one_table(
    batches: Iterator[pa.RecordBatch], work: Work, name: str
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield what `work` makes as batches of the table of that name: a `ManyWork` with one."""
    return ((name, batch) for batch in work(batches))


class Cut:
    """Cuts rows into tables that end with the row which makes them `most` bytes or more.

    So what is in a table follows from the rows, not from how they were batched.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        """Yield the tables that end in this batch."""
        if batch.num_rows == 0:
            return
        ends = self._bytes + np.cumsum(row_bytes(batch))
        first = 0
        while first < batch.num_rows and ends[-1] >= self._most:
            last = int(np.searchsorted(ends, self._most)) + 1
            self._held.append(batch.slice(first, last - first))
            yield from self.rest()
            ends = ends - ends[last - 1]
            first = last
        if first < batch.num_rows:
            self._held.append(batch.slice(first))
            self._bytes = int(ends[-1])

    def rest(self) -> Iterator[pa.Table]:
        """Yield the rows that no table has yet, if there are any."""
        if self._held:
            # in one piece: where pages end must not follow from the batches
            yield pa.Table.from_batches(self._held).combine_chunks()
        self._held, self._bytes = [], 0


def row_bytes(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Return about how many bytes each row has."""
    sizes = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        kind = column.type
        if pa.types.is_list(kind):
            width = 8 if pa.types.is_string(kind.value_type) else -(-kind.value_type.bit_width // 8)
            sizes += width * _lengths(pc.list_value_length(column))
        elif pa.types.is_string(kind) or pa.types.is_binary(kind):
            sizes += _lengths(pc.binary_length(column))
        else:
            sizes += -(-kind.bit_width // 8)
    return sizes


def encoded(table: pa.Table, encoding: Encoding) -> pa.Buffer:
    """Return a Parquet file with the table's rows, and their version behind them."""
    if _columns(table.schema) != _columns(encoding.schema):
        raise TypeError(f"a worker made {table.schema}, which is not {encoding.schema}")
    table = table.cast(encoding.schema)  # what Spark sends may be said to have no nulls
    versions = np.full(table.num_rows, encoding.version, dtype=np.int32)
    whole = table.append_column(VERSION_COLUMN, pa.array(versions))
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        whole.schema,
        compression=encoding.codec,
        use_dictionary=list(encoding.dictionaries),
        store_schema=False,
    ) as writer:
        writer.write_table(whole)
        writer.add_key_value_metadata(dict(encoding.told))
        if encoding.summed_up is not None:
            writer.add_key_value_metadata({SUMMARY_KEY: encoding.summed_up(table)})
    return sink.getvalue()


def decode_files(
    batches: Iterator[pa.RecordBatch], work: ManyWork, columns: Sequence[str], rows: int
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield what `work` makes of some columns of Parquet files, given as their bytes.

    Batches have at most so many rows.
    """
    return work(decoded(batches, columns, rows))


def decoded(
    batches: Iterator[pa.RecordBatch],
    columns: Sequence[str],
    rows: int,
    optional: Mapping[str, pa.DataType] = _NONE,
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of Parquet files, one row group after the other.

    A column that is given beside the files, such as that of their partition, is repeated; one that
    is `optional` is null where a file is without it.
    """
    for batch in batches:
        beside = [name for name in columns if name in batch.schema.names]
        for place, content in enumerate(batch.column(CONTENT)):
            same = {name: batch.column(name)[place] for name in beside}
            file = pq.ParquetFile(pa.BufferReader(content.as_buffer()))
            if optional:
                there = file.schema_arrow.names
                same |= {name: pa.scalar(None, kind) for name, kind in optional.items()
                         if name not in there}  # fmt: skip
            yield from _rows(file, columns, rows, same)


def _rows(
    file: pq.ParquetFile, columns: Sequence[str], rows: int, same: Mapping[str, pa.Scalar]
) -> Iterator[pa.RecordBatch]:
    """Yield the file's columns, and those with the `same` value in every row."""
    stored = [name for name in columns if name not in same]
    for part in file.iter_batches(rows, columns=stored, use_threads=False):
        found = [pa.repeat(same[name], len(part)) if name in same else part.column(name)
                 for name in columns]  # fmt: skip
        yield pa.RecordBatch.from_arrays(found, names=list(columns))


def _columns(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in schema]


def _lengths(found: pa.Array) -> NDArray[np.int64]:
    return np.asarray(found.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)


def _one_file(table: str, part: str | None, number: int, content: pa.Buffer) -> pa.RecordBatch:
    """Return a row with the file but for its last bytes; it is not copied."""
    size = content.size - len(MAGIC)
    assert content[size:].to_pybytes() == MAGIC
    ends = pa.py_buffer(np.array([0, size], dtype=np.int32))
    file = pa.BinaryArray.from_buffers(pa.binary(), 1, [None, ends, content])
    told = [pa.array([table]), pa.array([part], pa.string()), pa.array([number], pa.int32())]
    return pa.RecordBatch.from_arrays([*told, file], schema=_FILES_SCHEMA)
