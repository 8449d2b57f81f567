"""Files that workers encode and decode: the same rows, the same bytes however they were batched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
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

from spark_rank.session.filesystem import Filesystem
from spark_rank.session.session import runtime_setting
from spark_rank.store.footers import stored_summaries
from spark_rank.store.tables_of_workers import (
    table_from_files,
    tables_from_files,
    whole_files,
    worker_table,
    worker_tables,
    write_table,
    write_tables,
)
from spark_rank.store.worker_files import (
    MAGIC,
    Cut,
    Encoding,
    ManyWork,
    SumUp,
    Work,
    decoded,
    encode_tables,
    of_one_table,
    row_bytes,
)
from spark_rank.tables.contract import Column, Contract, arrow_schema

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
    one = partial(of_one_table, work=iter, name="things")
    made = encode_tables(batches, one, {"things": ENCODING}, most)
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
    cut = Cut(most)
    found = [table for batch in batched(rows, cuts) for table in cut.add(batch)]
    assert [table.num_rows for table in [*found, *cut.rest()]] == expected


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
        files(iter([wrong]), 1)


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


DOUBLES = Contract("doubles", 1, "of tests", (Column("double", "bigint", "twice as many"),))
SUMS = Contract("sums", 1, "of tests", (Column("sum", "bigint", "of a task, if there is one"),))


def doubles_and_sums() -> ManyWork:
    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        total = 0
        for batch in batches:
            sizes = batch["size"].to_pylist()
            total += sum(sizes)
            yield "doubles", pa.record_batch({"double": pa.array([2 * n for n in sizes])})
        if total:
            yield "sums", pa.record_batch({"sum": pa.array([total])})

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


@pytest.mark.parametrize("last", [10, 0])
def test_a_pass_over_files_makes_several_tables(
    spark: SparkSession, tmp_path: Path, last: int
) -> None:
    folder, store = tmp_path / "things", Filesystem(spark)
    write_table(worker_table(spark.range(0, last, 1, 3), some(), TABLE), TABLE, store, str(folder))
    made = tables_from_files(
        whole_files(spark, [str(folder)]), ["size"], doubles_and_sums(), [DOUBLES, SUMS]
    )
    places = write_tables(made, store, str(tmp_path / "made"))
    doubles, sums = (spark.read.parquet(places[name]) for name in ("doubles", "sums"))
    assert (doubles.schema, sums.schema) == (DOUBLES.schema(), SUMS.schema())
    assert sorted(row["double"] for row in doubles.collect()) == [2 * n for n in range(last)]
    assert sum(row["sum"] for row in sums.collect()) == sum(range(last))


def by_thirds() -> Work:
    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [{"name": f"n{n}", "size": n % 3} for n in batch.column("id").to_pylist()]
            yield pa.RecordBatch.from_pylist(rows, SCHEMA)

    return make


def names() -> SumUp:
    def found(things: pa.Table) -> str:
        return " ".join(things.column("name").to_pylist())

    return found


def test_a_table_with_a_folder_for_every_value(spark: SparkSession, tmp_path: Path) -> None:
    folder, store = tmp_path / "things", Filesystem(spark)
    made = worker_table(spark.range(0, 9, 1, 2), by_thirds(), TABLE, "size", names())
    write_table(made, TABLE, store, str(folder), ("size",))
    assert sorted(path.name for path in folder.glob("[!_.]*")) == ["size=0", "size=1", "size=2"]
    frame = spark.read.parquet(str(folder))
    assert frame.columns == [*(n for n in TABLE.schema().names if n != "size"), "size"]
    rows = {(row["name"], row["size"]) for row in frame.collect()}
    assert rows == {(f"n{n}", n % 3) for n in range(9)}
    # of two tasks: numbers 0 to 3 and the others
    assert stored_summaries(store, [str(folder)]) == ["n0 n3", "n6", "n1", "n4 n7", "n2", "n5 n8"]
    with pytest.raises(ValueError, match="is to be written by"):
        write_table(made, TABLE, store, str(folder))


def test_summaries_are_of_files_that_stay_as_they_are(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="footers are kept"):
        worker_table(spark.range(1), by_thirds(), TABLE, summed_up=names())


@pytest.mark.parametrize("last", [9, 0])
def test_a_pass_makes_tables_with_and_without_folders_for_values(
    spark: SparkSession, tmp_path: Path, last: int
) -> None:
    thirds = by_thirds()

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        total = 0
        for batch in thirds(batches):
            total += sum(batch["size"].to_pylist())
            yield "things", batch
        if total:
            yield "sums", pa.record_batch({"sum": pa.array([total])})

    made = worker_tables(
        spark.range(0, last, 1, 2), make, [TABLE, SUMS], {"things": "size"}, {"things": names()}
    )
    store = Filesystem(spark)
    places = write_tables(made, store, str(tmp_path / "made"))
    things, sums = (spark.read.parquet(places[name]) for name in ("things", "sums"))
    assert (len(things.columns), sums.schema) == (len(TABLE.schema()), SUMS.schema())
    rows = {(row["name"], row["size"]) for row in things.collect()}
    assert rows == {(f"n{n}", n % 3) for n in range(last)}
    assert sorted(row["sum"] for row in sums.collect()) == ([3, 6] if last else [])
    if last:
        folders = sorted(path.name for path in Path(places["things"]).glob("[!_.]*"))
        assert folders == ["size=0", "size=1", "size=2"]
        assert len(stored_summaries(store, [places["things"]])) == 6


def test_a_tasks_files_are_named_in_the_order_of_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    def large(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                parts = np.random.default_rng(number).random(9 << 20).astype(np.float32)
                row = {"name": f"n{number}", "size": 0, "parts": parts}
                yield pa.RecordBatch.from_pylist([row], SCHEMA)

    made = worker_table(spark.range(0, 6, 1, 1), large, TABLE, "size", names())
    store, folder = Filesystem(spark), str(tmp_path / "things")
    write_table(made, TABLE, store, folder, ("size",))
    assert stored_summaries(store, [folder]) == [f"n{number}" for number in range(6)]
    # not by chance: Spark sorts once, and by the number too
    executions: Any = spark._jsparkSession.sharedState().statusStore().executionsList()
    plan = executions.last().physicalPlanDescription()
    assert len(re.findall(r"^\(\d+\) Sort", plan, re.MULTILINE)) == 1
    assert re.search(r"^Arguments: \[size#\d+ ASC[^,]*, number#\d+ ASC", plan, re.MULTILINE)


def test_rows_as_large_as_files_are_written_in_parts(spark: SparkSession, tmp_path: Path) -> None:
    """What is sorted by table on its way is larger than a page of Spark's memory."""

    def large(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                values = np.random.default_rng(number).random(9 << 20).astype(np.float32)
                name = "things" if number % 2 else "others"
                row = {"size": number, "parts": values}
                yield name, pa.RecordBatch.from_pylist([row], SCHEMA)

    others = replace(TABLE, table="others")
    made = worker_tables(spark.range(0, 4, 1, 1), large, [TABLE, others])
    places = write_tables(made, Filesystem(spark), str(tmp_path / "made"))
    for name, expected in (("things", [1, 3]), ("others", [0, 2])):
        (*found,) = duckdb.sql(
            f"select size, parts[1], len(parts) from '{places[name]}/*.parquet' order by size"
        ).fetchall()
        firsts = [np.float32(np.random.default_rng(n).random()) for n in expected]
        lengths = [9 << 20] * 2
        assert found == [*zip(expected, map(float, firsts), lengths, strict=True)]


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
