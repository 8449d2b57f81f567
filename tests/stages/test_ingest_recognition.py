"""Ingest with nothing but a path: what the files tell, and what is said where they do not."""

from __future__ import annotations

import datetime
import gzip
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, InputConfig
from spark_rank.data.formats import read_ratings
from spark_rank.data.quality import with_reason
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.session.filesystem import Filesystem
from spark_rank.stages import STAGES
from spark_rank.stages.gathering import scan_settings
from spark_rank.stages.ingest_recognition import recognise_input
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from spark_rank.tables.contracts import ITEMS, RATINGS, USERS

MakeConfig = Callable[..., Config]
Rows = list[tuple[Any, ...]]


def recognised(spark: SparkSession, path: Path, **settings: Any) -> tuple[InputConfig, str]:
    files = Filesystem(spark)
    config = InputConfig(path=str(path), **settings)
    return recognise_input(files.glob(str(path)), config, files)


def read(spark: SparkSession, path: Path, **settings: Any) -> Rows:
    config, _ = recognised(spark, path, **settings)
    files = [info.path for info in Filesystem(spark).glob(str(path))]
    with scan_settings(spark):
        rows = with_reason(read_ratings(spark, files, config).rows, config)
        names = ("user_id", "item_id", "rating", "timestamp", "reason")
        return sorted((tuple(row) for row in rows.select(*names).collect()), key=str)


def write(folder: Path, text: str, name: str = "in.csv") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_path_is_enough(
    spark: SparkSession, tmp_path: Path, make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines of FilmTrust, and the record that says how they were read."""
    path = write(tmp_path, "1 2 3.5\n1 3 4\n2 2 0.5\n", "ratings.txt")
    config = make_config(f"input.path={path}")
    run = Run(spark, config.store, config.run_id)
    run_stages([STAGES["ingest"]], config, spark, run)
    said = "read as csv: delimiter blanks, no header, columns user, item, rating by position"
    assert f"[ingest] {said}\n" in capsys.readouterr().err
    record = run.record("ingest")
    assert record is not None
    assert record["facts"]["read_as"] == said
    ratings = run.read(RATINGS).join(run.read(USERS), "user").join(run.read(ITEMS), "item")
    found = {tuple(row) for row in ratings.select("user_id", "item_id", "rating").collect()}
    assert found == {("1", "2", 3.5), ("1", "3", 4.0), ("2", "2", 0.5)}


PLAIN = [("u", "a b", 3.5, 1600000000, None), ("v", "c", 4.0, 1600000001, None)]


@pytest.mark.parametrize(
    "text",
    [
        "u\ta b\t3.5\t1600000000\nv\tc\t4\t1600000001\n",
        "User ID;movie-id;Stars;unixTime\r\nu;a b;3,5;1600000000000\r\nv;c;4;1600000001000\r\n",
        "\ufeffu|a b|3.5|1600000000\nv|c|4|1600000001\n",
        'u "a b"   3.5\t1600000000\nv   c  4  1600000001\n',
        "u::a b::3.5::1600000000000000\nv::c::4::1600000001000000\n",
        "USERID,Item,score,date\nu,a b,3.5,13/09/2020 12:26:40\nv,c,4,13/09/2020 12:26:41\n",
        "a,b,userId,rating,x,ISBN,time\n1,2,u,3.5,3,a b,1600000000999999999\n"
        "1,2,v,4,3,c,1600000001999999999\n",
    ],
)
def test_tables_of_many_kinds_are_read_alike(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    path = write(tmp_path, text)
    assert read(spark, path) == PLAIN
    # what is found does not depend on whether somebody has looked before
    rows = read_ratings(spark, [str(path)], InputConfig(format="csv")).rows
    names = ("user_id", "item_id", "rating", "timestamp")
    if "::" not in text:
        assert sorted(tuple(r) for r in rows.select(*names).collect()) == [r[:4] for r in PLAIN]


def test_times_before_1970_are_rounded_down(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, "user,item,rating,time\nu,i,3,-1500\nu,j,3,-2000\nu,k,3,1999\n")
    assert [row[3] for row in read(spark, path, time_unit="ms")] == [-2, -2, 1]


def test_what_is_set_wins(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, "1,2;3,4;5,6;1600000000\n1,2;3,4;5,6;1600000001\n")
    settings, _ = recognised(spark, path, delimiter=",", header=True, decimal=".", time_unit="ms",
                             columns={"user": "0", "item": "1", "rating": "3"})  # fmt: skip
    assert (settings.delimiter, settings.header) == (",", True)
    assert (settings.decimal, settings.time_unit, settings.format) == (".", "ms", "csv")
    assert recognised(spark, path)[0].delimiter == ";"
    assert recognised(spark, path)[0].decimal == ","


def test_the_order_of_day_and_month_can_be_set(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, "user,item,rating,date\nu,i,3,03/04/2020\n")
    with pytest.raises(InputDataError, match=r"03/04/2020 .* --set input.day_first=true"):
        recognised(spark, path)
    april, march = 1585872000, 1583280000
    assert read(spark, path, day_first=True)[0][3] == april
    assert read(spark, path, day_first=False)[0][3] == march
    assert read(spark, path, columns={"timestamp": None})[0][3:] == (None, None)


def test_a_later_ambiguous_date_is_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, "user,item,rating,date\nu,i,3,2020-04-03\n")
    settings, _ = recognised(spark, path)
    write(tmp_path, "user,item,rating,date\nu,i,3,03/04/2020\n")
    rows = with_reason(read_ratings(spark, [str(path)], settings).rows, settings)
    assert [row["reason"] for row in rows.collect()] == ["unreadable_timestamp"]


NATIVE = {
    "movielens-100k": ("u.data", "196\t242\t3\t881250949\n"),
    "movielens-dat": ("ratings.dat", "1::1193::5::978300760\n"),
    "movielens-csv": ("ratings.csv", "userId,movieId,rating,timestamp\n1,2,3.5,978300760\n"),
    "netflix": ("mv_0000001.txt", "1:\n1488844,3,2005-09-06\n"),
    "jester": ("jester.csv", ",".join(["2", "-7.82", "8.5"] + ["99"] * 98) + "\n"),
    "book-crossing": ("BX.csv", '"User-ID";"ISBN";"Book-Rating"\n"1";"034545104X";"7"\n'),
    "eachmovie": ("vote.txt", "1\t10\t0.8\t1\t1996-03-01 12:00:00\n"),
    "judgments": ("cfquery", "QN 00001\nRD  139 1222\n"),
}


@pytest.mark.parametrize("name", NATIVE)
def test_native_formats_are_recognised(spark: SparkSession, tmp_path: Path, name: str) -> None:
    file, text = NATIVE[name]
    settings, words = recognised(spark, write(tmp_path, text, file))
    assert settings.format == name
    assert words.startswith(f"read as {name}")


def test_ratings_that_a_format_does_not_know_make_a_plain_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    for text in ("userId,movieId,rating\n1,2,9\n", "1::2::9::1600000000\n"):
        path = write(tmp_path, text)
        assert recognised(spark, path)[0].format == "csv"
        assert [row[:3] for row in read(spark, path)] == [("1", "2", 9.0)]


def test_letor_is_named_with_what_it_needs(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"add --set input.format=letor$"):
        recognised(spark, write(tmp_path, "2 qid:10 1:0.0 2:0.5 #docid = 1\n"))


def test_files_of_several_kinds_are_named(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "d", "196\t242\t3\t881250949\n", "u.data")
    write(tmp_path / "d", "This is a data set.\n", "README")
    with pytest.raises(InputDataError, match=r"README looks like no ratings .*u\.data like movi"):
        recognised(spark, tmp_path / "d")
    pq.write_table(pa.table({"user": [1]}), tmp_path / "d" / "a.parquet")
    with pytest.raises(InputDataError, match="a.parquet is a Parquet file and others are not"):
        recognised(spark, tmp_path / "d")


@pytest.mark.parametrize(
    ("text", "settings", "words"),
    [
        ("a\tb\tc\n1\t2\t3\n", {"format": "parquet"},
         r"--set input.format=csv 'input.delimiter=\\t'"),
        ("a;b;3\n", {"format": "jester"}, "--set input.format=csv 'input.delimiter=;'$"),
        ("1|2|3\n", {"format": "csv", "delimiter": ","}, r"say --set 'input.delimiter=\|'$"),
        ("1|2|3\n", {"format": "csv", "delimiter": ",", "header": True},
         r"say --set 'input.delimiter=\|' input.header=false$"),
        ("1,2,3\n", {"format": "csv", "delimiter": ",", "header": True},
         r"say --set input.header=false$"),
    ],
)  # fmt: skip
def test_a_table_of_another_kind_is_told_with_what_to_set(
    spark: SparkSession, tmp_path: Path, text: str, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        recognised(spark, write(tmp_path, text), **settings)


def test_parquet_and_packed_files_are_told_by_their_content(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "in.csv"
    pq.write_table(pa.table({"user": [1], "item": [2], "rating": [3.0]}), path)
    assert recognised(spark, path)[1] == "read as parquet: columns user, item, rating"
    with pytest.raises(ConfigError, match=r"in\.csv is a Parquet file.*input.format=parquet"):
        recognised(spark, path, format="csv")
    path.write_bytes(gzip.compress(b"1,2,3\n"))
    with pytest.raises(InputDataError, match=r"is packed by gzip.*rename it: mv"):
        recognised(spark, path, format="csv")


def test_parquet_types_of_plain_meaning_are_read(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    when = 1600000000_999999999
    table = {
        "user": pa.array([b"u", "é".encode(), b"\xff"]),
        "item": pa.array([Decimal("5.0"), Decimal("6.5"), None]),
        "rating": pa.array([1, 2, 3], pa.uint8()),
        "time": pa.array([when, when, None], pa.timestamp("ns")),
        "Note": [1, 2, 3],
        "note": [1, 2, 3],
    }
    pq.write_table(pa.table(table), path)
    assert read(spark, path) == [
        ("u", "5", 1.0, 1600000000, None), ("é", "6.5", 2.0, 1600000000, None),
        ("\ufffd", None, 3.0, None, "not_utf8"),
    ]  # fmt: skip
    others = {
        "user": pa.array([2**64 - 1, 0], pa.uint64()),
        "item": pa.array(["x", "y"]).dictionary_encode(),
        "rating": pa.array([Decimal("5.50"), Decimal("6.00")]),
        "time": pa.array([1600000000_999] * 2, pa.int64()),
    }
    pq.write_table(pa.table(others), path)
    assert recognised(spark, path)[1].endswith("times in milliseconds")
    assert read(spark, path) == [
        ("0", "y", 6.0, 1600000000, None), (str(2**64 - 1), "x", 5.5, 1600000000, None),
    ]  # fmt: skip


def test_parquet_files_of_other_time_types_are_read_each_by_its_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    units = {"ns": 10**18, "us": 10**15, "ms": 10**12, "s": 10**9}
    times = {unit: pa.array([value], pa.timestamp(unit)) for unit, value in units.items()}
    times["number"] = pa.array([10**12], pa.int64())
    for name, time in times.items():
        table = {"user": [name], "item": ["i"], "rating": [1.0], "time": time}
        pq.write_table(pa.table(table), folder / f"{name}.parquet")
    assert [row[3] for row in read(spark, folder)] == [10**9] * 5


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"rating": pa.array(np.array([1], np.float16))}, "'rating' is float16.*as float32"),
        ({"rating": [1], "time": pa.array([datetime.time(1)])}, "'time' is a time of day"),
        ({"rating": [1], "User": [1]}, "several columns that may hold the user: user, User"),
    ],
)
def test_parquet_types_without_a_plain_meaning_are_one_line(
    spark: SparkSession, tmp_path: Path, columns: dict[str, Any], words: str
) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"user": [1], "item": [1], **columns}), path)
    with pytest.raises((ConfigError, InputDataError), match=words) as caught:
        recognised(spark, path)
    assert "\n" not in str(caught.value)
    if "User" in columns:
        assert read(spark, path, columns={"user": "User"})[0][0] == "1"


def test_the_order_of_files_decides_nothing(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for i in range(20):
        write(folder, f"user;item;rating\nu{i};i;{i % 5},5\n", f"{i}.csv")
    files = Filesystem(spark)
    found = files.glob(str(folder))
    config = InputConfig(path=str(folder))
    assert recognise_input(found, config, files) == recognise_input(found[::-1], config, files)
