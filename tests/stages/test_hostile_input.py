"""Broken and hostile rating files: one line and an exit code, or a record that accounts for all."""

from __future__ import annotations

import gzip
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, InputConfig
from spark_rank.data.formats import FORMATS, read_ratings
from spark_rank.data.quality import with_reason
from spark_rank.errors import SparkRankError
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run
from spark_rank.tables.contracts import QUARANTINE, RATINGS, USERS

SAMPLES = {
    "movielens-100k": b"196\t242\t3\t881250949\n186\t302\t3\t891717742\n22\t377\t1\t878887116\n",
    "movielens-dat": b"1::1193::5::978300760\n1::661::3::978302109\n2::914::3::978301968\n",
    "movielens-csv": b"userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n1,1029,3.0,126\n",
    "netflix": b"1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n2:\n885013,4,2005-10-19\n",
    "jester": b"74," + b",".join([b"-7.82", b"8.79", b"99"] * 34)[:-3] + b"\n",
    "book-crossing": b'"User-ID";"ISBN";"Book-Rating"\n"276725";"034545104X";"7"\n"2";"0155";"5"\n',
    "eachmovie": b"1 10 0.8 1 1996-03-01 12:00:00\n2 10 0.4 1 1996-03-02 12:00:00\n",
    "judgments": b"query\tdoc\ta\tb\nq1\td1\t3\t4\nq1\td2\t1\t2\n",
    "letor": b"2 qid:10 1:0.0 2:0.5 #docid = 244338\n0 qid:10 1:0.1 2:0.4 #docid = 1\n",
    "csv": b"user,item,rating,timestamp\nu,i,4,11\nv,i,2,12\n",
    "parquet": b"",
}
# what a careless or unfriendly hand puts into a file
BITS = [
    b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f\x92\xa3", "\ufeff".encode(), b"\r", b"\r\n\r\n",
    b'"', b'""";', b"\\", b",,,,", b"::::", b"\t\t", b"1:", b"qid:", b" 1:nan", b"-0", b"1e400",
    b"-1e308", b"NaN", b"Infinity", b"9" * 400, b"0x7f", b"'; drop table users; --",
    b"<script>alert(1)</script>", b"=cmd|'/C calc'!A0", "\u202e\u2066".encode(), b"${jndi:ldap://x}",
    b"../../etc/passwd", b"$(touch x)", b"a" * 140_000, b"(" * 3000, b"\x1b[2J", b"QN 1\nRD ",
    b"%s%n", b"1 " * 5000, b"2147483648", b"-9223372036854775809", b"1969-12-31", b"99999-01-01",
]  # fmt: skip


def parquet(path: Path, columns: dict[str, Any]) -> None:
    pq.write_table(pa.table(columns), path)


def broken(content: bytes, chance: random.Random) -> bytes:
    """Return a sample with a few bytes lost, doubled, or put in."""
    text = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(text) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            del text[place : place + chance.randint(1, 20)]
        elif kind == 1:
            text[place:place] = chance.choice(BITS)
        elif kind == 2:
            text[place:place] = chance.randbytes(chance.randint(1, 30))
        else:
            text[place:place] = text[:place][-40:]
    return bytes(text)


def write_sample(folder: Path, name: str, chance: random.Random, *, packed: bool = True) -> Path:
    """Write a sample with damage; every third file is packed, and the half of these damaged."""
    path = folder / ("train.txt" if name == "letor" else "input.txt")
    content = SAMPLES[name]
    if name == "parquet":
        parquet(
            path, {"user": ["a", "b"] * 50, "item": list(range(100)), "rating": [1.0, 2.0] * 50}
        )
        content = path.read_bytes()
    content = broken(content, chance)
    if packed and chance.randrange(3) == 0:
        path = path.with_suffix(".gz")
        content = gzip.compress(content, mtime=0)
        if chance.randrange(2):
            content = broken(content, chance)
    path.write_bytes(content)
    return path


def ingest(spark: SparkSession, folder: Path, name: str, path: Path, **more: Any) -> str | None:
    """Ingest; return what the command would say and see that a refusal leaves nothing to read."""
    config = Config(store=str(folder / "store"))
    wanted = {"path": str(path), "format": name, "max_bad_share": 1.0, **more}
    config = replace(config, input=replace(config.input, **wanted))
    run = Run(spark, config.store, config.run_id)
    try:
        run_stage(STAGES["ingest"], config, spark, run)
    except SparkRankError as error:
        said, code = str(error), error.exit_code
    else:
        record = run.record("ingest")
        assert record is not None
        kept, aside = record["tables"][RATINGS.table], record["tables"][QUARANTINE.table]
        assert kept == run.read(RATINGS).count()
        assert aside == run.read(QUARANTINE).count()
        dropped = sum(record["facts"]["dropped_by_reason"].values())
        # what the reader finds, however the rows were taken in
        parsed = read_ratings(spark, [str(path)], config.input).rows.count()
        assert kept + aside + dropped == record["facts"]["rows_in"] == parsed
        return None
    assert code in (2, 3), said
    assert "\n" not in said
    assert run.record("ingest") is None
    assert not run.has(RATINGS)
    return said


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_of_any_format_is_parsed(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Every line that is not blank becomes a row, with a reason if it is no rating."""
    path = write_sample(tmp_path, name, random.Random(f"{name} 1"), packed=False)
    settings = InputConfig(format=name, max_bad_share=1.0)  # type: ignore[arg-type]
    try:
        rows = with_reason(read_ratings(spark, [str(path)], settings).rows, settings).collect()
    except SparkRankError as error:
        codes, rows = {error.exit_code}, []
    else:
        codes = set()
    assert codes <= {2, 3}
    assert all(row["reason"] or math.isfinite(row["rating"]) for row in rows)


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_hostile_text_is_kept_as_text(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Ids with markup, formulas and control characters go through as they are, and no further."""
    ids = [
        "<script>alert(1)</script>",
        "=cmd()",
        "a\u202eb",
        "${jndi:ldap://x}",
        "../../etc",
        "\x1b[2J",
    ]
    path = tmp_path / "input.txt"
    if name == "parquet":
        parquet(path, {"user": ids, "item": ids[::-1], "rating": [float(i) for i in range(6)]})
    else:
        lines = [f"{a},{b},{i}" for i, (a, b) in enumerate(zip(ids, ids[::-1], strict=True))]
        path.write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    assert ingest(spark, tmp_path, name, path) is None
    run = Run(spark, str(tmp_path / "store"), "default")
    assert {row["user_id"] for row in run.read(USERS).collect()} == set(ids)


@pytest.mark.parametrize("name", ["csv", "parquet", "netflix"])
def test_a_truncated_file_is_named(spark: SparkSession, tmp_path: Path, name: str) -> None:
    if name == "parquet":
        path = tmp_path / "input.parquet"
        parquet(path, {"user": ["a"] * 999, "item": list(range(999)), "rating": [1.0] * 999})
        content = path.read_bytes()
        path.write_bytes(b"PAR1" + bytes(200) + content[204:])
    else:
        path = tmp_path / "input.txt.gz"
        path.write_bytes(gzip.compress(SAMPLES[name] * 5000)[:-500])
    said = ingest(spark, tmp_path, name, path)
    assert said is not None
    assert f"{path.name}: is damaged and cannot be read" in said


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a`b": [1]}, "cannot tell which column"),
        ({"user": [[1]], "item": [1], "rating": [1.0]}, "it must be a plain number or text"),
        ({"user": ["a"], "item": ["b"], "rating": [1.0], "x`; y": [1]}, None),
    ],
)
def test_columns_of_a_strange_parquet_file(
    spark: SparkSession, tmp_path: Path, columns: dict[str, Any], words: str | None
) -> None:
    path = tmp_path / "input.parquet"
    parquet(path, columns)
    said = ingest(spark, tmp_path, "parquet", path)
    assert (said is None) if words is None else (said is not None and words in said)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", FORMATS)
def test_many_damaged_files_of_any_format(spark: SparkSession, tmp_path: Path, name: str) -> None:
    for number in range(2, 22):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = write_sample(folder, name, random.Random(f"{name} {number}"))
        ingest(spark, folder, name, path)
