"""Native files become ratings; other rows are quarantined with a reason, and none is lost."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import InputConfig
from spark_rank.data.formats import read_ratings
from spark_rank.data.quality import with_reason
from spark_rank.errors import ConfigError, InputDataError

Parsed = list[tuple[Any, ...]]


def parse(spark: SparkSession, path: Path, **settings: Any) -> Parsed:
    config = InputConfig(**settings)
    rows = with_reason(read_ratings(spark, [str(path)], config).rows, config).collect()
    names = ("user_id", "item_id", "rating", "timestamp", "reason")
    return [tuple(row[name] for name in names) for row in rows]


def write(tmp_path: Path, text: str, name: str = "ratings.txt") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_movielens_100k(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, "196\t242\t3\t881250949\r\n\n186\t302\t3\t\n1\t2\n")
    assert parse(spark, path, format="movielens-100k") == [
        ("196", "242", 3.0, 881250949, None),
        ("186", "302", 3.0, None, None),
        ("1", "2", None, None, "malformed_row"),
    ]


def test_movielens_dat_with_and_without_time(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "ratings.dat.gz"
    path.write_bytes(gzip.compress(b"1::1193::5::978300760\n1::661::3.5\n::9::1\n1:::5\n"))
    assert parse(spark, path, format="movielens-dat") == [
        ("1", "1193", 5.0, 978300760, None),
        ("1", "661", 3.5, None, None),
        (None, "9", 1.0, None, "missing_user"),
        ("1", ":5", None, None, "malformed_row"),
    ]


def test_csv_with_header_quotes_and_bad_rows(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        '\ufeffuserId,movieId,rating,timestamp\n007,"a,b",4.5,11\n8,b,x,12\n9,c,nan,1\n'
        "9,d,inf,1\n,e,1,1\n9,,1,1\n9,f,6,1\n9,g,1,soon\n9,h\n9,i,1,1,1\n"
    )
    rows = parse(spark, write(tmp_path, text), format="csv", rating_max=5.0)
    assert rows[0] == ("007", "a,b", 4.5, 11, None)
    assert [row[-1] for row in rows[1:]] == [
        "unreadable_rating", "rating_not_finite", "rating_not_finite", "missing_user",
        "missing_item", "rating_out_of_range", "unreadable_timestamp", "malformed_row",
        "malformed_row",
    ]  # fmt: skip


def test_the_header_of_a_joined_csv_is_no_rating_wherever_it_stands(
    spark: SparkSession, tmp_path: Path
) -> None:
    part = "user,item,rating\nu,i,3\n"
    rows = parse(spark, write(tmp_path, part + part + "user,item,stars\n"), format="csv")
    assert [row[-1] for row in rows] == [None, None, "unreadable_rating"]


def test_csv_columns_by_name_and_other_delimiters(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, "stars;when;who;what\n3;5;u;i\n")
    columns = {"user": "who", "item": "what", "rating": "stars", "timestamp": "when"}
    assert parse(spark, path, format="csv", delimiter=";", columns=columns) == [
        ("u", "i", 3.0, 5, None)
    ]
    with pytest.raises(ConfigError, match=r"input.columns.user.*no column 'wh'.*'who'"):
        parse(spark, path, format="csv", delimiter=";", columns={**columns, "user": "wh"})
    with pytest.raises(ConfigError, match=r"input.columns.user: cannot tell.*stars, when"):
        parse(spark, path, format="csv", delimiter=";")


def test_a_column_that_is_there_twice_is_not_chosen(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, "user,item,rating,rating,note,note\nu,i,3,5,a,b\n")
    with pytest.raises(ConfigError, match=r"input.columns.rating: .*two columns named 'rating'"):
        parse(spark, path, format="csv")
    columns: dict[str, str | None] = {"user": "0", "item": "1", "rating": "2", "timestamp": None}
    found = parse(spark, path, format="csv", header=False, columns=columns)
    assert found[1] == ("u", "i", 3.0, None, None)


def test_csv_without_header(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, "u,i,3\nv,j,4\n")
    assert parse(spark, path, format="csv", header=False) == [
        ("u", "i", 3.0, None, None),
        ("v", "j", 4.0, None, None),
    ]
    by_position = parse(
        spark, path, format="csv", header=False, columns={"user": "1", "item": "0", "rating": "2"}
    )
    assert by_position[0] == ("i", "u", 3.0, None, None)


def test_every_file_of_a_directory_has_its_header(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        write(tmp_path, f"user,item,rating\n{name},i,3\n", name)
    config = InputConfig(format="csv")
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    rows = with_reason(read_ratings(spark, files, config).rows, config).collect()
    assert sorted((row["user_id"], row["reason"]) for row in rows) == [
        ("a.csv", None), ("b.csv", None),
    ]  # fmt: skip


def test_a_csv_without_any_line(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match="holds only blank lines"):
        parse(spark, write(tmp_path, "\n"), format="csv")


def test_parquet_ids_of_any_type(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    frame = spark.createDataFrame(
        [(2**40, "00x", 3, None), (5, None, 4, None), (6, "y", None, None)],
        "customer bigint, movie string, stars int, at timestamp",
    )
    frame.coalesce(1).write.parquet(str(path))
    assert parse(spark, path, format="parquet", columns={"timestamp": "at"}) == [
        (str(2**40), "00x", 3.0, None, None),
        ("5", None, 4.0, None, "missing_item"),
        ("6", "y", None, None, "unreadable_rating"),
    ]


def test_parquet_files_are_read_by_their_own_columns(spark: SparkSession, tmp_path: Path) -> None:
    tables: dict[str, dict[str, list[Any]]] = {
        "a": {"user": [7, 8], "item": ["i", "j"], "rating": [3.0, 4.0]},
        "b": {"rating": ["5", "x"], "user": ["007", "u"], "item": [1, 2]},
        "c": {"user_id": ["v"], "movie": ["k"], "stars": [2], "why": ["so"]},
        "d": {"user": [9], "item": ["i"], "rating": [3.0]},
        "e": {"who": [9], "item": ["i"], "rating": [3.0]},
    }
    files = [str(tmp_path / f"{name}.parquet") for name in tables]
    for path, columns in zip(files, tables.values(), strict=True):
        pq.write_table(pa.table(columns), path)
    config = InputConfig(format="parquet")
    rows = with_reason(read_ratings(spark, files[:4], config).rows, config)
    found = {(row["user_id"], row["item_id"], row["rating"], row["reason"]): row["raw"]
             for row in rows.collect()}  # fmt: skip
    assert found.keys() == {
        ("7", "i", 3.0, None), ("8", "j", 4.0, None), ("007", "1", 5.0, None),
        ("u", "2", None, "unreadable_rating"), ("v", "k", 2.0, None), ("9", "i", 3.0, None),
    }  # fmt: skip
    assert json.loads(found["v", "k", 2.0, None]) == {
        "user_id": "v", "movie": "k", "stars": 2, "why": "so",
    }  # fmt: skip
    with pytest.raises(ConfigError, match=r"column of .*e\.parquet holds the user.*one of who"):
        read_ratings(spark, files, config)


def test_parquet_timestamps_become_seconds(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    spark.sql(
        "select 'u' user, 'i' item, 1.5 rating, timestamp'2005-09-06 00:00:01' timestamp"
    ).write.parquet(str(path))
    assert parse(spark, path, format="parquet") == [("u", "i", 1.5, 1125964801, None)]


def test_a_nested_parquet_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    spark.sql("select 'u' user, array(1) item, 1.5 rating").write.parquet(str(path))
    with pytest.raises(
        ConfigError, match="'item' is array<int>: it must be a plain number or text"
    ):
        parse(spark, path, format="parquet")


def test_files_with_other_column_orders_are_read_by_their_own_headers(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, "user,item,rating\nu,i,3\n", "a.csv")
    write(tmp_path, "rating,item,user\n4,j,v\n", "b.csv")
    write(tmp_path, "", "c.csv")
    write(tmp_path, "\n\n", "d.csv")
    config = InputConfig(format="csv")
    files = [str(tmp_path / f"{name}.csv") for name in "cabd"]
    rows = with_reason(read_ratings(spark, files, config).rows, config).collect()
    found = sorted((r["user_id"], r["item_id"], r["rating"], r["reason"]) for r in rows)
    assert found == [("u", "i", 3.0, None), ("v", "j", 4.0, None)]
    write(tmp_path, "who,item,rating\nu,i,3\n", "e.csv")
    with pytest.raises(ConfigError, match=r"column of .*e\.csv holds the user"):
        read_ratings(spark, [*files, str(tmp_path / "e.csv")], config)


def test_ids_stay_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    text = 'user,item,rating\n x ,"i""1",3\n"a,b",i\\,4\n"two\nlines",i,3\n'
    rows = parse(spark, write(tmp_path, text), format="csv")
    assert [row[:3] for row in rows[:2]] == [(" x ", 'i"1', 3.0), ("a,b", "i\\", 4.0)]
    assert [row[-1] for row in rows[2:]] == ["malformed_row", "malformed_row"]


def test_text_that_is_not_utf8_is_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("user,item,rating\nJosé,i,3\nJose,i,3\n".encode("latin-1"))
    assert [r[-1] for r in parse(spark, path, format="csv")] == ["not_utf8", None]
    assert parse(spark, path, format="csv")[0][0] == "Jos\ufffd"


def test_blanks_are_no_id(spark: SparkSession, tmp_path: Path) -> None:
    text = "user,item,rating\n ,v,5\nu,\t,5\n\u00a0,v,5\nu, i,5\n"
    rows = parse(spark, write(tmp_path, text), format="csv")
    user, item = "missing_user", "missing_item"
    assert [(*row[:2], row[-1]) for row in rows] == [
        (None, "v", user), ("u", None, item), (None, "v", user), ("u", " i", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "rating", "reason"),
    [
        ("3", 3.0, None), ("-0.5", -0.5, None), (".5", 0.5, None), ("1e-1", 0.1, None),
        ("5d", None, "unreadable_rating"), ("0x1p1", None, "unreadable_rating"),
        ("1e400", float("inf"), "rating_not_finite"), ("1e12", 1e12, "rating_out_of_range"),
        ("-1000001", -1000001.0, "rating_out_of_range"), (" 4 ", 4.0, None),
    ],
)  # fmt: skip
def test_what_is_a_rating(
    spark: SparkSession, tmp_path: Path, text: str, rating: float | None, reason: str | None
) -> None:
    (row,) = parse(spark, write(tmp_path, f"user,item,rating\nu,i,{text}\n"), format="csv")
    assert (row[2], row[-1]) == (rating, reason)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1125964801", 1125964801), ("1125964801.0", 1125964801), ("8.8e8", 880_000_000),
        ("2005-09-06", 1125964800), ("2005-09-06T00:00:01", 1125964801),
        ("2005-09-06 00:00:01", 1125964801), ("-5", -5), ("", None),
    ],
)  # fmt: skip
def test_what_is_a_time(
    spark: SparkSession, tmp_path: Path, text: str, seconds: int | None
) -> None:
    path = write(tmp_path, f"user,item,rating,timestamp\nu,i,3,{text}\n")
    (row,) = parse(spark, path, format="csv")
    assert row[3:] == (seconds, None)


def test_a_time_without_its_day_is_none(spark: SparkSession, tmp_path: Path) -> None:
    """It would be another time with every day that the ratings are read on."""
    texts = ["12:30", "10:15:00", "T01:02:03", "2005-09", "2005-9-6", " 2005-09-06 "]
    lines = "".join(f"u,i,3,{text}\n" for text in texts)
    rows = parse(spark, write(tmp_path, "user,item,rating,timestamp\n" + lines), format="csv")
    whole = (1125964800, None)
    assert [row[3:] for row in rows] == [(None, "unreadable_timestamp")] * 4 + [whole] * 2


def test_a_timestamp_can_be_left_out(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, "user,item,rating,timestamp\nu,i,3,whenever\n")
    assert parse(spark, path, format="csv")[0][-1] == "unreadable_timestamp"
    (row,) = parse(spark, path, format="csv", columns={"timestamp": None})
    assert row == ("u", "i", 3.0, None, None)


def test_parquet_as_pandas_writes_it(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    spark.sql(
        "select double(7) user, double(3.5) item, float(4) rating, "
        "double(881250949) timestamp, timestamp_ntz'2005-09-06 00:00:01' at"
    ).write.parquet(str(path))
    assert parse(spark, path, format="parquet") == [("7", "3.5", 4.0, 881250949, None)]
    at = parse(spark, path, format="parquet", columns={"timestamp": "at"})
    assert at[0][3] == 1125964801


@pytest.mark.parametrize("name", ["r[1].csv", "r {x} 100%.csv", "a*b?.csv"])
def test_names_with_the_signs_of_a_glob(spark: SparkSession, tmp_path: Path, name: str) -> None:
    path = write(tmp_path, "user,item,rating\nu,i,3\n", name)
    assert parse(spark, path, format="csv") == [("u", "i", 3.0, None, None)]
