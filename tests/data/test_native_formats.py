"""A golden sample per native format, with its traps."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.cli import main
from spark_rank.config import InputConfig
from spark_rank.data.formats import FORMATS, read_ratings
from spark_rank.data.formats.detection import check_format
from spark_rank.data.formats.letor import MAX_FEATURES
from spark_rank.data.formats.lines import read_lines, split_starts, with_heading, with_line
from spark_rank.data.formats.titles import read_titles
from spark_rank.data.quality import with_reason
from spark_rank.errors import ConfigError
from spark_rank.session.session import runtime_setting

Parsed = list[tuple[Any, ...]]
DAY = 1125964800  # 2005-09-06


def parse(spark: SparkSession, files: Path | list[Path], name: str, **settings: Any) -> Parsed:
    config = InputConfig(format=name, **settings)  # type: ignore[arg-type]
    paths = [str(path) for path in ([files] if isinstance(files, Path) else files)]
    rows = with_reason(read_ratings(spark, paths, config).rows, config)
    names = ("user_id", "item_id", "rating", "timestamp", "reason")
    return [tuple(row) for row in rows.orderBy("source", "block", "row").select(*names).collect()]


def write(folder: Path, text: str, name: str, encoding: str = "utf-8") -> Path:
    path = folder / name
    content = text.encode(encoding)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


@pytest.mark.parametrize("name", ["combined_data_1.txt", "combined_data_1.txt.gz"])
def test_netflix_combined(spark: SparkSession, tmp_path: Path, name: str) -> None:
    text = (
        "1:\r\n1488844,3,2005-09-06\r\n007,5,2005-09-06\r\n"  # leading zeros stay
        "2:\n3:\n\n4000000000,1,2005-09-06\n"  # an empty movie; an id beyond int32
        "8,6,2005-09-06\n8,3,2005-02-30\n8,3\n8,3,2005\n ,3,2005-09-06\n8,x,2005-09-06\n"
        "oops:\n9,4,2005-09-06\n"  # whose rating is this?
        "4:\n9,4,2005-09-06"
    )
    assert parse(spark, write(tmp_path, text, name), "netflix") == [
        ("1488844", "1", 3.0, DAY, None),
        ("007", "1", 5.0, DAY, None),
        ("4000000000", "3", 1.0, DAY, None),
        ("8", "3", 6.0, DAY, "rating_out_of_range"),
        ("8", "3", 3.0, None, "unreadable_timestamp"),
        ("8", "3", 3.0, None, "malformed_row"),
        ("8", "3", 3.0, None, "unreadable_timestamp"),
        (None, "3", 3.0, DAY, "missing_user"),
        ("8", "3", None, DAY, "unreadable_rating"),
        ("oops:", None, None, None, "malformed_row"),
        ("9", None, 4.0, DAY, "missing_item"),
        ("9", "4", 4.0, DAY, None),
    ]


def test_netflix_directory_and_a_file_without_its_movie(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = [
        write(tmp_path, f"{movie}:\n1,{movie},2005-09-06\n", f"mv_000000{movie}.txt")
        for movie in range(1, 6)
    ]
    files.append(write(tmp_path, "1,3,2005-09-06\n", "mv_0000006.txt"))
    found = parse(spark, files, "netflix")
    assert found[:5] == [("1", str(m), float(m), DAY, None) for m in range(1, 6)]
    assert found[5] == ("1", None, 3.0, DAY, "missing_item")


@pytest.mark.parametrize("split", [pytest.param(7, marks=pytest.mark.slow), 64, 1000])
def test_movies_may_lie_across_many_splits(spark: SparkSession, tmp_path: Path, split: int) -> None:
    expected = []
    files = []
    for number in range(2):
        lines = []
        for movie in range(1, 9):
            lines.append(f"{movie}:")
            # movies of 0 to 49 ratings, the first ones empty
            for user in range((movie - 2) * 7 if movie > 2 else 0):
                lines.append(f"{user},{(user + number) % 5 + 1},2005-09-06")
                expected.append((str(user), str(movie), (user + number) % 5 + 1.0, DAY, None))
        files.append(write(tmp_path, "\n".join(lines), f"combined_data_{number}.txt"))
    with runtime_setting(spark, "spark.sql.files.maxPartitionBytes", str(split)):
        config = InputConfig(format="netflix")
        partitions = read_ratings(spark, [str(f) for f in files], config).rows
        assert partitions.rdd.getNumPartitions() > 2
        assert parse(spark, files, "netflix") == expected


def test_headings_and_line_numbers_are_those_of_a_plain_loop(
    spark: SparkSession, tmp_path: Path
) -> None:
    """More lines than a chunk of the heading join holds, packed several splits to a task."""
    text = [f"{i}:" if i % 997 == 5 or i in (6000, 6001) else f"line {i}" for i in range(9000)]
    path = write(tmp_path, "\n".join(text) + "\n", "a.txt")
    other = write(tmp_path, "x\n1:\ny\n", "b.txt")
    heading: str | None = None
    expected = []
    for number, line in enumerate(text, start=1):
        heading = line if line.endswith(":") else heading
        expected.append((number, line, heading))
    expected += [(1, "x", None), (2, "1:", "1:"), (3, "y", "1:")]
    for size in ("20000", "134217728"):
        with runtime_setting(spark, "spark.sql.files.maxPartitionBytes", size):
            lines = read_lines(spark, [str(path), str(other)], "utf-8")
            headed = with_heading(lines, F.when(F.col("raw").endswith(":"), F.col("raw")))
            placed = with_line(headed, split_starts(lines)).orderBy("source", "line")
            found = [tuple(row) for row in placed.select("line", "raw", "heading").collect()]
        assert found == expected


def test_movielens_csv(spark: SparkSession, tmp_path: Path) -> None:
    text = "userId,movieId,rating,timestamp\r\n1,31,2.5,1260759144\r\n1,32,2.7,1\n1,33,0.0,1\n"
    assert parse(spark, write(tmp_path, text, "ratings.csv"), "movielens-csv") == [
        ("1", "31", 2.5, 1260759144, None),
        ("1", "32", 2.7, 1, "unknown_rating_level"),
        ("1", "33", 0.0, 1, "rating_out_of_range"),
    ]


def test_jester(spark: SparkSession, tmp_path: Path) -> None:
    text = "2,-7.82,99,8.79\n0,99,99,99\n3,1,2\n2,99,12.5,x\n1,99,99,99\n\n1,99.0,99,0\n"
    path = write(tmp_path, text, "jester-data-1.csv.gz")
    assert parse(spark, path, "jester") == [
        ("jester-data-1:1", "1", -7.82, None, None),
        ("jester-data-1:1", "3", 8.79, None, None),
        ("jester-data-1:3", None, None, None, "malformed_row"),
        ("jester-data-1:4", "2", 12.5, None, "rating_out_of_range"),
        ("jester-data-1:4", "3", None, None, "unreadable_rating"),
        ("jester-data-1:5", None, None, None, "malformed_row"),
        ("jester-data-1:7", "3", 0.0, None, None),
    ]


def test_jester_users_of_files_with_one_name_stay_apart(
    spark: SparkSession, tmp_path: Path
) -> None:
    def users(*names: str) -> list[str]:
        files = []
        for name in names:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            files.append(write(tmp_path, "2,1,2\n", name))
        return [row[0] for row in parse(spark, files, "jester")]

    assert users("a/x.csv", "b/x.csv", "b/y.csv.gz") == [
        "a/x:1", "a/x:1", "b/x:1", "b/x:1", "b/y:1", "b/y:1",
    ]  # fmt: skip
    same = users("a/x.csv", "b/x.csv", "b/x.csv.gz")
    assert same == ["a/x.csv:1"] * 2 + ["b/x.csv:1"] * 2 + ["b/x.csv.gz:1"] * 2


def test_book_crossing(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        '"User-ID";"ISBN";"Book-Rating"\r\n"276725";"034545104X";"0"\r\n"276726";"0155061224";"5"\n'
        '"2";"a\\"b;c";"7"\n"3";"café";"11"\n"3";"x"\n"3";"x;"8"\n"4";"";"8"\n'
    )
    path = write(tmp_path, text, "BX-Book-Ratings.csv", "latin-1")
    expected = [
        ("276725", "034545104X", 0.0, None, "implicit"),
        ("276726", "0155061224", 5.0, None, None),
        ("2", 'a"b;c', 7.0, None, None),
        ("3", "café", 11.0, None, "rating_out_of_range"),
    ]
    found = parse(spark, path, "book-crossing")
    assert found[:4] == expected
    assert [row[-1] for row in found[4:]] == ["malformed_row", "malformed_row", "missing_item"]
    kept = parse(spark, path, "book-crossing", keep_implicit=True)
    assert kept[0] == ("276725", "034545104X", 0.0, None, None)


def test_eachmovie(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        "1\t10\t0.8\t1\t1996-03-01 12:00:00\n1 11  1 .5 3/1/96 12:00:00\n"
        "2 10 0.5 1 3/1/1996\n2 11 0.2 1 soon\n2 12 0.2\n2 13 0.2 1 12:00:00\n"
    )
    noon, midnight = 825681600, 825638400
    assert parse(spark, write(tmp_path, text, "vote.txt"), "eachmovie") == [
        ("1", "10", 0.8, noon, None),
        ("1", "11", 1.0, noon, None),
        ("2", "10", 0.5, midnight, "unknown_rating_level"),
        ("2", "11", 0.2, None, "unreadable_timestamp"),
        ("2", "12", 0.2, None, "malformed_row"),
        ("2", "13", 0.2, None, "unreadable_timestamp"),
    ]


def test_judgments_as_cfquery(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        "QN 00001 \nQU What are the effects of 139 1222\n   from CF patients? \nNR 00002\n"
        "RD  139 1222  151 2211\n    440 0011\n \nQN 00002\nQU next\nNR 00001\nRD  169 10x0\n"
    )
    found = parse(spark, write(tmp_path, text, "cfquery"), "judgments")
    expected = {
        ("00001", document): scores
        for document, scores in (("139", "1222"), ("151", "2211"), ("440", "0011"))
    }
    assert sorted(found[:-1]) == sorted(
        (str(judge), f"{query}/{document}", float(score), None, None)
        for (query, document), scores in expected.items()
        for judge, score in enumerate(scores, start=1)
    )
    assert found[-1][-1] == "malformed_row"


def test_documents_below_a_query_that_cannot_be_read_belong_to_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = (
        "QN\nRD  7 1\n\ufeffQN 00001\nRD  139 1\nQN \nQU lost\nRD  139 0\n    7 2\n"
        "QN00003\nRD  8 2\nQN 00004\nRD  8 1\n"
    )
    path = write(tmp_path, text, "cfquery")
    marked = write(tmp_path, "\ufeffQN 00005\nRD  9 2\n", "marked")
    missing, malformed = "missing_item", "malformed_row"
    assert parse(spark, [path, marked], "judgments") == [
        (None, None, None, None, malformed),
        ("1", None, 1.0, None, missing),
        ("1", "00001/139", 1.0, None, None),
        (None, None, None, None, malformed),
        ("1", None, 0.0, None, missing),
        ("1", None, 2.0, None, missing),
        (None, None, None, None, malformed),
        ("1", None, 2.0, None, missing),
        ("1", "00004/8", 1.0, None, None),
        ("1", "00005/9", 2.0, None, None),
    ]


def test_judgments_as_a_table(spark: SparkSession, tmp_path: Path) -> None:
    text = "query\tdoc\trew\tjbw\n1\t007\t1\t2\n1\t8\t\t0\n1\t9\t1\n\t10\t1\t\n1\t \t\t2\n"
    path = write(tmp_path, text, "judgments.tsv")
    other = write(tmp_path, "query\tdoc\tanna\n5\t6\t1\n", "z.tsv")
    assert sorted(parse(spark, [path, other], "judgments"), key=str) == sorted(
        [
            ("rew", "1/007", 1.0, None, None),
            ("jbw", "1/007", 2.0, None, None),
            ("jbw", "1/8", 0.0, None, None),
            (None, "1/9", None, None, "malformed_row"),
            ("rew", None, 1.0, None, "missing_item"),
            ("jbw", None, 2.0, None, "missing_item"),
            ("anna", "5/6", 1.0, None, None),
        ],
        key=str,
    )


def test_letor(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        "2 qid:10 1:0.0 2:0.5 3:-1e-2 #docid = 244338\n"
        "0 qid:10 1:1 3:2 #docid = GX008-86-4444840 inc = 1 prob = 0.086\n"
        "1 qid:11 3:2 1:1\n"
        "1 qid:11 1:x\n1 10 1:0\nx qid:11 1:1\n1 qid:11 1:1 1:2\n1 qid:11 0:1\n"
    )
    path = write(tmp_path, text, "train.txt")
    assert parse(spark, path, "letor") == [
        ("10", "10/244338", 2.0, None, None),
        ("10", "10/GX008-86-4444840", 0.0, None, None),
        ("11", "11/train.txt:3", 1.0, None, None),
        ("11", "11/train.txt:4", 1.0, None, "malformed_row"),
        (None, None, 1.0, None, "malformed_row"),
        ("11", "11/train.txt:6", None, None, "unreadable_rating"),
        ("11", "11/train.txt:7", 1.0, None, "malformed_row"),
        ("11", "11/train.txt:8", 1.0, None, "malformed_row"),
    ]
    rows = read_ratings(spark, [str(path)], InputConfig(format="letor")).rows.orderBy("row")
    vectors = [row["features"] for row in rows.collect()]
    assert vectors[:3] == [
        pytest.approx([0.0, 0.5, -0.01]), [1.0, 0.0, 2.0], [1.0, 0.0, 2.0],
    ]  # fmt: skip
    assert vectors[3] is None


def test_a_feature_with_a_great_number_does_not_widen_all_vectors(
    spark: SparkSession, tmp_path: Path
) -> None:
    numbers = (MAX_FEATURES, MAX_FEATURES + 1, 999_999, 10**12)
    text = "".join(f"1 qid:9 1:1 {number}:2 #docid = d\n" for number in numbers)
    path = write(tmp_path, text, "train.txt")
    rows = read_ratings(spark, [str(path)], InputConfig(format="letor")).rows.orderBy("row")
    found = [(row["fields_ok"], row["features"]) for row in rows.collect()]
    assert found == [(True, [1.0, *[0.0] * (MAX_FEATURES - 2), 2.0])] + [(False, None)] * 3


def test_letor_documents_without_a_name_are_told_apart_by_their_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    def written(folder: str, name: str) -> Path:
        (tmp_path / folder).mkdir(exist_ok=True)
        return write(tmp_path / folder, "1 qid:7 1:1\n", name)

    def items(*files: Path) -> list[Any]:
        return [row[1] for row in parse(spark, list(files), "letor")]

    a, b = written("Fold1", "train.txt"), written("Fold1", "vali.txt.gz")
    assert items(a, b) == ["7/train.txt:1", "7/vali.txt.gz:1"]
    c = written("Fold2", "train.txt")
    assert items(a, b, c) == [
        "7/Fold1/train.txt:1", "7/Fold1/vali.txt.gz:1", "7/Fold2/train.txt:1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "lines", "titles"),
    [
        # as the people of MovieLens wrote it, and as others converted it
        ("movielens-dat", [b'1::"Cats" Live (1998)::Musical', "2::Été::".encode("latin-1"),
                           "3::Été::".encode(), b"4:Cats"],
         [("1", '"Cats" Live (1998)', 1998), ("2", "Été", None), ("3", "Été", None), None]),
        ("netflix", [b'1,1998,"Cats" Live'], [("1", '"Cats" Live', 1998)]),
        ("movielens-csv", [b'1,"""Cats"", Live (1998)",Musical', "2,Été,".encode("latin-1")],
         [("1", '"Cats", Live (1998)', 1998), ("2", "Été", None)]),
    ],
)  # fmt: skip
def test_titles_are_read_as_they_are_written(
    spark: SparkSession, tmp_path: Path, name: str, lines: list[bytes], titles: list[Any]
) -> None:
    path = tmp_path / "titles"
    path.write_bytes(b"\n".join(lines))
    found = [tuple(row) for row in read_titles(spark, [str(path)], name).collect()]
    assert found == [title or (None, None, None) for title in titles]


def test_text_in_latin_1(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, "user,item,rating\nJosé,ß,3\n", "in.csv", "latin-1")
    assert parse(spark, path, "csv", encoding="latin-1") == [("José", "ß", 3.0, None, None)]
    assert parse(spark, path, "csv")[0][-1] == "not_utf8"


def test_what_is_configured_replaces_the_levels_of_the_format(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = write(tmp_path, "1::2::7\n1::3::7.25\n1::4::5\n", "ratings.dat")
    reasons = [
        [row[-1] for row in parse(spark, path, "movielens-dat", **settings)]
        for settings in ({}, {"rating_max": 7.0}, {"levels": [6.0, 7.0, 8.0]})
    ]
    outside, unknown = "rating_out_of_range", "unknown_rating_level"
    assert reasons == [[outside, outside, None], [None, outside, None], [None, unknown, outside]]


def test_a_time_in_milliseconds_is_impossible(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, "1::2::5::978300760000\n", "ratings.dat")
    assert parse(spark, path, "movielens-dat")[0][-1] == "impossible_timestamp"


SAMPLES = {
    "movielens-100k": "196\t242\t3\t881250949",
    "movielens-dat": "1::1193::5::978300760",
    "movielens-csv": "userId,movieId,rating,timestamp",
    "netflix": "1:",
    "jester": ",".join(["74", "-7.82", "8.5"] + ["99"] * 98),
    "book-crossing": '"User-ID";"ISBN";"Book-Rating"',
    "eachmovie": "1\t10\t0.8\t1\t1996-03-01 12:00:00",
    "judgments": "QN 00001",
    "letor": "2 qid:10 1:0.0 2:0.5 #docid = 244338",
    "csv": "user,item,rating",
    "parquet": "PAR1",
}


def test_there_is_a_sample_of_every_format() -> None:
    assert SAMPLES.keys() == FORMATS.keys()


@pytest.mark.parametrize("actual", SAMPLES)
@pytest.mark.parametrize("chosen", [name for name in SAMPLES if name != "csv"])
def test_a_wrong_format_is_named_with_the_right_one(chosen: str, actual: str) -> None:
    settings = InputConfig(format=chosen)  # type: ignore[arg-type]
    if chosen == actual:
        check_format("in.txt", [SAMPLES[actual]], settings)
        return
    with pytest.raises(ConfigError, match=rf"in\.txt does not look like '{chosen}'.*={actual}"):
        check_format("in.txt", [SAMPLES[actual]], settings)


@pytest.mark.parametrize("actual", ["movielens-dat", "netflix", "letor", "jester", "judgments"])
def test_csv_is_not_everything(actual: str) -> None:
    with pytest.raises(ConfigError, match=f"use input.format={actual}"):
        check_format("in.txt", [SAMPLES[actual]], InputConfig(format="csv"))


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("who|what|stars", {"delimiter": "|"}),
        ("1,2,3", {"header": False}),
        ("196\t242\t3\t881250949", {"delimiter": "\\t", "header": False}),
        ("what is this?", {}),
    ],
)
def test_no_format_is_suggested_without_need(line: str, settings: dict[str, Any]) -> None:
    check_format("in.txt", [line], InputConfig(format="csv", **settings))


@pytest.mark.slow
def test_real_data_has_the_published_counts(
    spark: SparkSession, data_file: Callable[[str], Path]
) -> None:
    for file, name, expected in (
        ("ml-100k/u.data", "movielens-100k", 100_000),
        ("ml-1m/ratings_notime.dat.gz", "movielens-dat", 1_000_209),
        ("samples/ml-1m.ratings.sample.dat", "movielens-dat", 1_000),
        ("jester/jester-data-1.csv.gz", "jester", 1_810_455),
        ("cystic-fibrosis/cfquery", "judgments", 19_276),
        ("cystic-fibrosis/judgments.tsv", "judgments", 19_276),
    ):
        config = InputConfig(format=name)  # type: ignore[arg-type]
        rows = with_reason(read_ratings(spark, [str(data_file(file))], config).rows, config)
        counts = {row["reason"]: row["count"] for row in rows.groupBy("reason").count().collect()}
        assert counts == {None: expected}, file


def test_the_command_lists_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(FORMATS)
    assert all(known.example in line for known, line in zip(FORMATS.values(), lines, strict=True))
