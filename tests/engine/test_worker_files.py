"""Files that workers encode and decode: the same rows, the same bytes however they were batched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.data.contracts import Column, Contract, arrow_schema
from spark_rank.data.filesystem import Filesystem
from spark_rank.engine.session import runtime_setting
from spark_rank.engine.tables_of_workers import (
    rows_from_files,
    table_from_files,
    whole_files,
    worker_table,
    write_table,
)
from spark_rank.engine.worker_files import (
    MAGIC,
    Encoding,
    Work,
    decoded,
    encode_rows,
    row_bytes,
    tables_of,
)

TABLE = Contract(
    "things",
    7,
    "of tests",
    (
        Column("name", "string", "what it is called"),
        Column("size", "int", "how many"),
        Column("weight", "double", "how heavy", varied=True),
        Column("known", "boolean", "whether"),
        Column("parts", "array<float>", "of what", varied=True),
        Column("words", "array<string>", "said"),
    ),
)
SCHEMA = arrow_schema(TABLE.columns)
ENCODING = Encoding(SCHEMA, TABLE.version, "zstd", ("name", "words.list.element"), {"told": "you"})

floats = st.floats(width=32, allow_nan=False)
things = st.fixed_dictionaries(
    {
        "name": st.none() | st.text(max_size=5),
        "size": st.none() | st.integers(-9, 9),
        "weight": st.none() | floats,
        "known": st.none() | st.booleans(),
        "parts": st.none() | st.lists(st.none() | floats, max_size=4),
        "words": st.none() | st.lists(st.text(max_size=3), max_size=3),
    }
)


def batched(rows: Sequence[dict[str, Any]], cuts: Sequence[int]) -> Iterator[pa.RecordBatch]:
    whole = pa.RecordBatch.from_pylist(list(rows), SCHEMA)
    ends = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    return iter([whole.slice(a, b - a) for a, b in pairwise(ends)] or [whole])


def files(batches: Iterator[pa.RecordBatch], most: int) -> list[bytes]:
    made = encode_rows(batches, iter, ENCODING, most)
    return [row.as_py() + MAGIC for batch in made for row in batch.column("file")]


def contents(encoded: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
    return iter([pa.record_batch({"content": pa.array(encoded, pa.binary())})])


@given(st.lists(things, max_size=20), st.lists(st.integers(0, 20)), st.integers(1, 400))
def test_files_hold_the_rows_and_follow_from_them_alone(
    rows: list[dict[str, Any]], cuts: list[int], most: int
) -> None:
    encoded = files(batched(rows, []), most)
    assert encoded == files(batched(rows, cuts), most)
    read = [pq.read_table(pa.BufferReader(file)).to_pylist() for file in encoded]
    assert [row for part in read for row in part] == [
        {**row, "schema_version": TABLE.version} for row in rows
    ]
    back = [row for part in decoded(contents(encoded), SCHEMA.names, 3) for row in part.to_pylist()]
    assert back == rows


@given(st.lists(things, min_size=1, max_size=20), st.lists(st.integers(0, 20)), st.integers(1, 400))
def test_a_table_ends_with_the_row_that_fills_it(
    rows: list[dict[str, Any]], cuts: list[int], most: int
) -> None:
    sizes = row_bytes(next(batched(rows, []))).tolist()
    expected, held = [0], 0
    for size in sizes:  # row by row
        if held >= most:
            expected.append(0)
            held = 0
        expected[-1] += 1
        held += size
    assert [table.num_rows for table in tables_of(batched(rows, cuts), most)] == expected


def test_the_bytes_of_a_row_are_those_of_its_values() -> None:
    row = {"name": "four", "size": 1, "weight": 2.0, "known": True, "parts": [1.0, 2.0, 3.0],
           "words": ["a", "b"]}  # fmt: skip
    empty = dict.fromkeys(row)
    assert row_bytes(next(batched([row, empty], []))).tolist() == [
        4 + 4 + 8 + 1 + 12 + 16,
        4 + 8 + 1,
    ]


def test_a_file_names_its_columns_as_sparks_own_do_and_tells_what_it_is_told() -> None:
    row = {"name": "a", "parts": [1.5, None]}
    (encoded,) = files(batched([row], []), 100)
    metadata = pq.read_metadata(pa.BufferReader(encoded))
    paths = [metadata.schema.column(place).path for place in range(len(metadata.schema))]
    assert paths == ["name", "size", "weight", "known", "parts.list.element",
                     "words.list.element", "schema_version"]  # fmt: skip
    assert metadata.metadata == {b"told": b"you"}
    columns = {metadata.row_group(0).column(p).path_in_schema: metadata.row_group(0).column(p)
               for p in range(len(paths))}  # fmt: skip
    assert all(column.compression == "ZSTD" for column in columns.values())
    with_dictionary = {path for path, c in columns.items() if c.has_dictionary_page}
    assert with_dictionary <= {"name", "words.list.element"}
    assert "name" in with_dictionary


def test_rows_that_are_not_of_the_contract_are_refused() -> None:
    wrong = pa.RecordBatch.from_pylist([{"name": "a", "size": 1.5}])
    with pytest.raises(TypeError, match="which is not"):
        next(encode_rows(iter([wrong]), iter, ENCODING))


def some() -> Work:
    """Return what makes things of numbers; 100 and more make nothing.

    Functions inside of others travel to workers, who know no modules of tests.
    """

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            own = [number for number in batch.column("id").to_pylist() if number < 100]
            rows = [
                {"name": f"n{number}", "size": number, "weight": number / 7,
                 "known": number % 2 == 0, "parts": np.arange(number, dtype=np.float32)}
                for number in own
            ]  # fmt: skip
            yield pa.RecordBatch.from_pylist(rows, SCHEMA)

    return make


def twice() -> Work:
    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"double": pa.array([2 * n for n in batch["size"].to_pylist()])})

    return make


def test_spark_writes_them_and_everybody_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    folder, store = tmp_path / "things", Filesystem(spark)
    write_table(worker_table(spark.range(0, 40, 1, 5), some(), TABLE), TABLE, store, str(folder))
    written = sorted(path.name for path in folder.glob("[!_.]*"))
    assert len(written) == 5
    assert all(name.endswith(".parquet") for name in written)
    frame = spark.read.parquet(str(folder))
    assert frame.schema == TABLE.schema(), "names, types and comments"
    assert frame.agg(F.sum("size"), F.sum(F.size("parts"))).head() == (780, 780)
    found = duckdb.sql(f"select sum(size), min(schema_version) from '{folder}/*.parquet'")
    assert found.fetchall() == [(780, 7)]
    # written again they take the place of what is there
    write_table(worker_table(spark.range(0, 10, 1, 2), some(), TABLE), TABLE, store, str(folder))
    doubled = rows_from_files(whole_files(spark, [str(folder)]), ["size"], twice(), "double bigint")
    assert sorted(row["double"] for row in doubled.collect()) == [2 * n for n in range(10)]


def test_a_table_without_rows_is_a_table(spark: SparkSession, tmp_path: Path) -> None:
    folder, store = tmp_path / "nothing", Filesystem(spark)
    write_table(worker_table(spark.range(100, 140, 1, 3), some(), TABLE), TABLE, store, str(folder))
    frame = spark.read.parquet(str(folder))
    assert (frame.schema, frame.count()) == (TABLE.schema(), 0)
    copied = tmp_path / "copied"
    copies = table_from_files(whole_files(spark, [str(folder)]), SCHEMA.names, iter, TABLE)
    write_table(copies, TABLE, store, str(copied))
    assert spark.read.parquet(str(copied)).count() == 0


def test_tasks_with_and_without_rows_stand_beside_each_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, store = tmp_path / "some", Filesystem(spark)
    few = worker_table(spark.range(90, 130, 1, 4), some(), TABLE)
    more = worker_table(spark.range(0, 5, 1, 1), some(), TABLE)
    write_table(few.union(more), TABLE, store, str(folder))
    assert len([*folder.glob("[!_.]*.parquet")]) == 2
    sizes = sorted(row["size"] for row in spark.read.parquet(str(folder)).collect())
    assert sizes == [*range(5), *range(90, 100)]


@pytest.mark.parametrize("codec", ["snappy", "gzip", "uncompressed", "lz4_raw", "ZSTD"])
def test_the_codec_is_sparks_setting(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    folder = tmp_path / codec
    with runtime_setting(spark, "spark.sql.parquet.compression.codec", codec):
        made = worker_table(spark.range(0, 9, 1, 1), some(), TABLE)
    write_table(made, TABLE, Filesystem(spark), str(folder))
    assert spark.read.parquet(str(folder)).count() == 9
    (path,) = folder.glob("[!_.]*.parquet")
    found = pq.read_metadata(path).row_group(0).column(0).compression
    assert found == {"lz4_raw": "LZ4", "gzip": "GZIP", "snappy": "SNAPPY", "ZSTD": "ZSTD",
                     "uncompressed": "UNCOMPRESSED"}[codec]  # fmt: skip
