"""ingest as a whole: round trips, accounting, duplicates, scale, dictionaries, titles."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.data.formats import read_ratings
from spark_rank.data.quality import with_reason
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.session.session import runtime_setting
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from spark_rank.tables.contract import Contract
from spark_rank.tables.contracts import (
    GIVEN_FEATURES,
    ITEM_CONTENT,
    ITEMS,
    QUARANTINE,
    RATING_SCALE,
    RATINGS,
    SYNTHETIC,
    TITLES,
    USERS,
)
from spark_rank.tables.user_buckets import bucket_of
from tests.generated import generated_run

MakeConfig = Callable[..., Config]
DAY = 86_400


@pytest.fixture
def ingested(spark: SparkSession, make_config: MakeConfig) -> Callable[..., Run]:
    """Ingest a file with settings given as on the command line, below ``input.``."""

    def run(path: Path, format_name: str, *sets: str, store: str = "") -> Run:
        keys = [f"input.{entry}" for entry in (f"path={path}", f"format={format_name}", *sets)]
        own = [f"store={store}"] if store else []
        own += ["features.kind=given"] if format_name == "letor" else []
        config = make_config(*keys, *own, f"run_id={path.stem}")
        made = Run(spark, config.store, config.run_id)
        run_stages([STAGES["ingest"]], config, spark, made)
        return made

    return run


def facts(run: Run) -> dict[str, Any]:
    record = run.record("ingest")
    assert record is not None
    return dict(record["facts"])


def rows(run: Run, contract: Contract, *columns: str) -> list[tuple[Any, ...]]:
    names = columns or tuple(column.name for column in contract.columns)
    return sorted((tuple(row) for row in run.read(contract).select(*names).collect()), key=str)


def with_ids(run: Run) -> DataFrame:
    joined = run.read(RATINGS).join(run.read(USERS), "user").join(run.read(ITEMS), "item")
    return joined.select("user_id", "item_id", "rating", "timestamp")


def write(folder: Path, text: str, name: str = "in.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def generated(spark: SparkSession, make_config: MakeConfig, written: str) -> Run:
    config = make_config("synthesize.users=25", f"synthesize.format={written}")
    return generated_run(spark, config, last="ingest")


@pytest.mark.parametrize("split", [pytest.param("134217728", marks=pytest.mark.slow), "3000"])
def test_generated_ratings_survive_netflix_text(
    spark: SparkSession, make_config: MakeConfig, split: str
) -> None:
    with runtime_setting(spark, "spark.sql.files.maxPartitionBytes", split):
        run = generated(spark, make_config, "netflix")
    expected = sorted(
        (row["user"], row["item"], row["rating"], row["timestamp"] // DAY * DAY)
        for row in generated(spark, make_config, "parquet").read(SYNTHETIC).collect()
    )
    assert sorted(tuple(row) for row in with_ids(run).collect()) == expected
    assert facts(run)["quarantined_by_reason"] == {}


@pytest.mark.parametrize(
    "name", [pytest.param("movielens-csv", marks=pytest.mark.slow), "movielens-dat"]
)
def test_generated_ratings_survive_movielens_text(
    spark: SparkSession, make_config: MakeConfig, name: str
) -> None:
    tables = []
    for written in (name, "parquet"):
        run = generated(spark, make_config, written)
        tables.append(sorted(tuple(row) for row in with_ids(run).collect()))
    assert tables[0] == tables[1]


# an id with a zero in front is no plain line, but a good one
GOOD = st.builds(
    "{}{},{},2005-09-06".format,
    st.sampled_from(["", "", "0"]),
    st.integers(1, 6),
    st.integers(1, 5),
)
BAD = st.text(st.sampled_from("12,:x-é \t\"'"), min_size=1, max_size=12)
HEADING = st.integers(1, 9).map(lambda number: f"{number}:")


@pytest.mark.slow  # tests/data/test_accounting.py has the same of reading alone
@hypothesis.settings(max_examples=3)
@hypothesis.given(
    lines=st.lists(st.one_of(GOOD, GOOD, HEADING, BAD), min_size=1, max_size=40),
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    split=st.sampled_from(["150", "100000"]),
)
def test_every_line_of_a_fuzzed_file_is_accounted_for(
    spark: SparkSession, lines: list[str], end: str, last: bool, split: str
) -> None:
    """In = kept + quarantined; each quarantined line is the text at its place in its file."""
    text = "1:" + end + "9,5,2005-09-06" + end + end.join(lines) + (end if last else "")
    numbered = dict(enumerate(re.split("\r?\n", text), start=1))
    wanted = {
        number: line
        for number, line in numbered.items()
        if line.strip(" ") and not re.fullmatch(r"\s*[0-9]+\s*:\s*", line)
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        runtime_setting(spark, "spark.sql.files.maxPartitionBytes", split),
    ):
        path = Path(folder) / "combined_data_1.txt"
        path.write_bytes(text.encode())
        config = Config(store=folder + "/store")
        settings = {"path": str(path), "format": "netflix", "max_bad_share": 1.0}
        config = replace(config, input=replace(config.input, **settings))
        run = Run(spark, config.store, config.run_id)
        run_stages([STAGES["ingest"]], config, spark, run)
        found = [tuple(row) for row in with_ids(run).collect()]
        quarantined = [row.asDict() for row in run.read(QUARANTINE).collect()]
        judged = with_reason(read_ratings(spark, [str(path)], config.input).rows, config.input)
        reference = judged.collect()
    kept = len(found)
    assert kept + len(quarantined) == len(wanted)
    for row in quarantined:
        assert wanted.pop(row["line"]) == row["raw"]
        assert row["source"].endswith("combined_data_1.txt")
    assert len(wanted) == kept
    # the fast scan takes what the reader for all cases takes, and nothing else
    names = ("user_id", "item_id", "rating", "timestamp")
    good = [tuple(row[name] for name in names) for row in reference if row["reason"] is None]
    assert set(found) <= set(good)
    assert {row[:2] for row in found} == {row[:2] for row in good}
    reasons = Counter(row["reason"] for row in quarantined if row["reason"] != "duplicate")
    assert reasons == Counter(row["reason"] for row in reference if row["reason"])


def test_ratings_of_no_movie_are_set_aside_in_every_split(
    spark: SparkSession, tmp_path: Path, ingested: Callable[..., Run]
) -> None:
    lines = [f"{user},3,2005-09-06" for user in range(1, 41)]
    path = write(tmp_path, "\n".join([*lines, "7:", "5,4,2005-09-06"]), "ab.txt")
    with runtime_setting(spark, "spark.sql.files.maxPartitionBytes", "300"):
        run = ingested(path, "netflix", "max_bad_share=1")
    assert [tuple(row)[:3] for row in with_ids(run).collect()] == [("5", "7", 4.0)]
    found = sorted(run.read(QUARANTINE).select("line", "raw", "reason", "source").collect())
    assert [tuple(row)[:3] for row in found] == [
        (number, line, "missing_item") for number, line in enumerate(lines, start=1)
    ]
    assert {row["source"] for row in found} == {run.files.glob(str(path))[0].path}


@pytest.mark.parametrize(("mark", "end"), [("", "\n15"), ("\ufeff", "")])
def test_no_byte_of_a_text_is_lost_between_records(
    tmp_path: Path, ingested: Callable[..., Run], mark: str, end: str
) -> None:
    text = "7:\n1,3,2005-09-06\n15,4,2005-09-06\n9,1,2005-09-06"
    run = ingested(write(tmp_path, mark + text + end, "ab.txt"), "netflix", "max_bad_share=1")
    kept = {("1", 3.0), ("9", 1.0), ("15", 4.0)}
    assert {(row["user_id"], row["rating"]) for row in with_ids(run).collect()} == kept
    found = run.read(QUARANTINE).select("line", "raw", "reason").collect()
    assert [tuple(row) for row in found] == ([(5, "15", "malformed_row")] if end else [])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("latest", {("u", "i"): (5.0, 30), ("u", "j"): (4.0, None), ("v", "i"): (2.0, 7)}),
        pytest.param(
            "first", {("u", "i"): (1.0, 10), ("u", "j"): (3.0, None), ("v", "i"): (2.0, 7)},
            marks=pytest.mark.slow,
        ),
        ("mean", {("u", "i"): (3.0, 30), ("u", "j"): (3.5, None), ("v", "i"): (2.0, 7)}),
        pytest.param("reject", {("v", "i"): (2.0, 7)}, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_duplicate_policies(
    tmp_path: Path, ingested: Callable[..., Run], policy: str,
    expected: dict[tuple[str, str], tuple[float, int | None]],
) -> None:  # fmt: skip
    lines = ["u,i,1,10", "u,i,5,30", "u,i,3,20", "u,j,3,", "u,j,4,", "v,i,2,7"]
    path = write(tmp_path, "\n".join(["user,item,rating,timestamp", *lines]))
    run = ingested(path, "csv", f"duplicates={policy}")
    found = {(row[0], row[1]): (row[2], row[3]) for row in with_ids(run).collect()}
    assert found == expected
    assert facts(run)["quarantined_by_reason"] == {"duplicate": 6 - len(expected)}
    aside = rows(run, QUARANTINE, "source", "line", "raw")
    assert len(aside) == 6 - len(expected)
    assert {row[0] for row in aside} == {run.files.glob(str(path))[0].path}
    assert all(lines[number - 2] == raw for _, number, raw in aside)
    counting = {"u,i,1,10", "u,j,3,"} if policy == "first" else {"u,i,5,30", "u,j,4,"}
    counting = {"v,i,2,7"} | (set() if policy == "reject" else counting)
    assert {raw for *_, raw in aside} == set(lines) - counting
    # means are no levels
    levels = {row[1] for row in rows(run, RATING_SCALE)}
    assert levels <= {1.0, 2.0, 3.0, 4.0, 5.0}


@pytest.mark.parametrize("placed", [True, False])
def test_of_equal_lines_the_first_counts(
    tmp_path: Path, ingested: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, placed: bool
) -> None:
    monkeypatch.setattr("spark_rank.stages.ingest.MOST_PLACED", 2 if placed else 1)
    same = "1,3,2005-09-06"
    text = f"7:\n{same}\n2,3,2005-09-06\n{same}\n8:\n{same}\n7:\n{same}\n"
    run = ingested(write(tmp_path, text, "mv.txt"), "netflix")
    assert len(with_ids(run).collect()) == 3
    aside = rows(run, QUARANTINE, "line", "raw", "reason")
    if placed:
        assert aside == [(4, same, "duplicate"), (8, same, "duplicate")]
        return
    values = {"user_id": "1", "item_id": "7", "rating": 3.0, "timestamp": 1125964800}
    assert [(row[0], json.loads(row[1])) for row in aside] == [(None, values)] * 2


def test_a_file_of_ratings_has_whole_buckets(
    tmp_path: Path, ingested: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"u{user},i{item},{1 + (user + item) % 5}" for user in range(50) for item in range(20)]
    path = write(tmp_path, "user,item,rating\n" + "\n".join(lines) + "\n")
    one = ingested(path, "csv", store=str(tmp_path / "one"))
    # several shares to a bucket, and a dictionary too long for every worker
    monkeypatch.setattr("spark_rank.stages.ingest_pieces._SHARE_BYTES", 1_000)
    monkeypatch.setattr("spark_rank.stages.ingest_pieces._MOST_HELD", 5)
    many = ingested(path, "csv", store=str(tmp_path / "many"))
    assert_df_equality(with_ids(one), with_ids(many), ignore_row_order=True)
    assert facts(many)["buckets"] == 3
    placed = many.read(RATINGS).withColumn("file", F.input_file_name())
    named = placed.join(many.read(USERS), "user").select("user_id", "file").distinct()
    files = {(bucket_of(row["user_id"], 3), row["file"]) for row in named.collect()}
    assert sorted(bucket for bucket, _ in files) == [0, 1, 2]
    assert len({file for _, file in files}) == 3


def test_rejected_duplicates_alone_are_told_as_such(
    tmp_path: Path, ingested: Callable[..., Run]
) -> None:
    path = write(tmp_path, "user,item,rating\nu,i,3\nu,i,4\n")
    with pytest.raises(InputDataError, match=r"each of the 2 ratings occurs more than once"):
        ingested(path, "csv", "duplicates=reject")


def test_levels_are_told_from_the_ratings(tmp_path: Path, ingested: Callable[..., Run]) -> None:
    path = write(tmp_path, "user,item,rating\nu,a,3\nu,b,0.5\nv,a,3\nv,b,2\n")
    run = ingested(path, "csv")
    assert rows(run, RATING_SCALE) == [
        (1, 0.5, None, 1), (2, 2.0, None, 1), (3, 3.0, None, 2),
    ]  # fmt: skip
    assert facts(run)["rating_scale"] == {"kind": "levels", "low": 0.5, "high": 3.0, "levels": 3}


def test_a_continuous_scale_has_no_levels_until_it_is_cut(
    tmp_path: Path, ingested: Callable[..., Run]
) -> None:
    ratings = [round(-10 + i * 0.2, 1) for i in range(101)]
    lines = [f"u{i % 7},i{i},{rating}" for i, rating in enumerate(ratings)]
    path = write(tmp_path, "\n".join(["user,item,rating", *lines]))
    plain = ingested(path, "csv")
    assert rows(plain, RATING_SCALE) == []
    assert facts(plain)["rating_scale"]["kind"] == "continuous"
    cut = ingested(path, "csv", "cuts=[-3.2, 0, 5]")
    below = [sum(r < c for r in ratings) for c in (-3.2, 0.0, 5.0)]
    counts = [below[0], below[1] - below[0], below[2] - below[1], len(ratings) - below[2]]
    found = rows(cut, RATING_SCALE)
    assert [(row[0], row[2], row[3]) for row in found] == list(
        zip([1, 2, 3, 4], [None, -3.2, 0.0, 5.0], counts, strict=True)
    )
    assert [row[1] for row in found] == pytest.approx([-6.6, -1.6, 2.5, 7.5])


def test_new_ids_are_numbered_behind_the_known_ones(
    tmp_path: Path, ingested: Callable[..., Run]
) -> None:
    first = ingested(write(tmp_path, "user,item,rating\n007,a,3\n7,b,4\nx,c,4\n", "one.csv"), "csv")
    store = first.root.removeprefix("file:").split("/runs/")[0]
    old_users, old_items = dict(rows(first, USERS)), dict(rows(first, ITEMS))
    for number, earlier in enumerate(("one", first.root)):
        text = "user,item,rating\nnew,b,3\n7,d,4\n70000000000,e,1\n"
        path = write(tmp_path, text, f"later{number}.csv")
        run = ingested(path, "csv", f"dictionaries_from={earlier}", store=store)
        users, items = dict(rows(run, USERS)), dict(rows(run, ITEMS))
        assert old_users.items() <= users.items()
        assert old_items.items() <= items.items()
        assert users.keys() - old_users.keys() == {"new", "70000000000"}
        assert sorted(users.values()) == list(range(5))
        assert sorted(items.values()) == list(range(5))
        read = {(row[0], row[1]) for row in with_ids(run).collect()}
        assert read == {("new", "b"), ("7", "d"), ("70000000000", "e")}
    again = write(tmp_path, "user,item,rating\nu,i,3\n", "three.csv")
    with pytest.raises(ConfigError, match="'nowhere' has no finished table 'users'"):
        ingested(again, "csv", "dictionaries_from=nowhere", store=store)
    with pytest.raises(ConfigError, match=r"dictionaries_from: some/where: is not the directory"):
        ingested(again, "csv", "dictionaries_from=some/where", store=store)


TITLES_BY_FORMAT = {
    "u.item": ("1|Toy Story (1995)|01-Jan-1995||x|0|1\n9|Été|||\n", "latin-1"),
    "movies.dat": ("1::Toy Story (1995)::Animation|Comedy\n9::Été::Drama\n", "latin-1"),
    "movies.csv": ('movieId,title,genres\n1,"Toy Story (1995)",A|B\n9,Été,C\n', "utf-8"),
    "movie_titles.txt": ("1,1995,Toy Story (1995)\n9,NULL,Été\n", "latin-1"),
}


@pytest.mark.parametrize(
    "name",
    ["u.item", "movies.csv",
     *[pytest.param(name, marks=pytest.mark.slow) for name in ("movies.dat", "movie_titles.txt")]],
)  # fmt: skip
def test_titles(tmp_path: Path, ingested: Callable[..., Run], name: str) -> None:
    text, encoding = TITLES_BY_FORMAT[name]
    titles = tmp_path / name
    titles.write_bytes((text + "neither\n").encode(encoding))
    run = ingested(write(tmp_path, "user,item,rating\nu,1,3\nu,2,4\n"), "csv", f"titles={titles}")
    number = dict(rows(run, ITEMS, "item_id", "item"))["1"]
    assert rows(run, TITLES) == [("1", number, "Toy Story (1995)", 1995), ("9", None, "Été", None)]
    assert facts(run)["titles_unreadable"] == 1


def test_titles_that_are_none_are_found_before_ratings_are_read(
    tmp_path: Path, ingested: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    ratings = write(tmp_path, "user,item,rating\nu,1,3\n")
    monkeypatch.setattr("spark_rank.stages.ingest.gather", not_to_be_called)
    odd = write(tmp_path, "what is this\n", "odd.txt")
    with pytest.raises(ConfigError, match="input.titles: cannot tell the format"):
        ingested(ratings, "csv", f"titles={odd}")
    with pytest.raises(InputDataError, match="no line is a title in the format 'netflix'"):
        ingested(ratings, "csv", f"titles={odd}", "titles_format=netflix")
    with pytest.raises(ConfigError, match="input.titles: .*nowhere: no such file"):
        ingested(ratings, "csv", f"titles={tmp_path}/nowhere")
    packed = tmp_path / "movies.csv.gz"
    random = Random(1)
    lines = "".join(f"{number},{random.getrandbits(128):x}\n" for number in range(20_000))
    packed.write_bytes(gzip.compress(lines.encode())[:-10_000])
    with pytest.raises(InputDataError, match=r"movies.csv.gz: is damaged and cannot be read \("):
        ingested(ratings, "csv", f"titles={packed}")
    packed.write_bytes(b"no gzip")
    with pytest.raises(InputDataError, match=r"movies.csv.gz: cannot be read: "):
        ingested(ratings, "csv", f"titles={packed}")


CONTENT_BY_FORMAT = {
    "u.item": ("1|Été (1995)|||0|1|0\n9|Solo|||1|0|0\n", "latin-1"),
    "movies.dat": ("1::Été (1995)::Animation|Comedy\n9::Solo::Drama\n", "latin-1"),
    "movies.csv": (
        'movieId,title,genres\n1,"Été (1995)",Animation|Comedy\n9,Solo,Drama\n',
        "utf-8",
    ),
}
CONTENT_VALUES = {
    "u.item": {("1", "column 2", "Été (1995)"), ("1", "column 5", "0"), ("1", "column 6", "1"),
               ("1", "column 7", "0"), ("9", "column 2", "Solo"), ("9", "column 5", "1"),
               ("9", "column 6", "0"), ("9", "column 7", "0")},
    "movies.dat": {("1", "column 2", "Été (1995)"), ("1", "column 3", "Animation"),
                   ("1", "column 3", "Comedy"), ("9", "column 2", "Solo"),
                   ("9", "column 3", "Drama")},
    "movies.csv": {("1", "title", "Été (1995)"), ("1", "genres", "Animation"),
                   ("1", "genres", "Comedy"), ("9", "title", "Solo"), ("9", "genres", "Drama")},
}  # fmt: skip


@pytest.mark.parametrize("name", CONTENT_BY_FORMAT)
def test_item_content(tmp_path: Path, ingested: Callable[..., Run], name: str) -> None:
    text, encoding = CONTENT_BY_FORMAT[name]
    items = tmp_path / name
    items.write_bytes(text.encode(encoding))
    run = ingested(write(tmp_path, "user,item,rating\nu,1,3\nu,2,4\n"), "csv", f"items={items}")
    numbers = dict(rows(run, ITEMS, "item_id", "item"))
    assert numbers.keys() == {"1", "2", "9"}, "9 has no rating, but may be in lists"
    found = rows(run, ITEM_CONTENT, "item_id", "name", "value", "item")
    assert {row[:3] for row in found} == CONTENT_VALUES[name]
    assert len(found) == len(CONTENT_VALUES[name])
    assert all(number == numbers[item_id] for item_id, *_, number in found)


def test_item_content_in_parquet(tmp_path: Path, ingested: Callable[..., Run]) -> None:
    table = pa.table({"id": [1, 2], "tags": [["a", "b"], None], "length": [90.5, None]})
    pq.write_table(table, tmp_path / "items.parquet")
    ratings = write(tmp_path, "user,item,rating\nu,1,3\nu,2,4\n")
    run = ingested(ratings, "csv", f"items={tmp_path}/items.parquet")
    assert sorted(rows(run, ITEM_CONTENT, "item_id", "name", "value")) == [
        ("1", "length", "90.5"), ("1", "tags", "a"), ("1", "tags", "b")
    ]  # fmt: skip


def test_an_item_table_without_values_is_refused(
    tmp_path: Path, ingested: Callable[..., Run]
) -> None:
    ratings = write(tmp_path, "user,item,rating\nu,1,3\n")
    only_ids = write(tmp_path, "id\n1\n", "ids.csv")
    with pytest.raises(InputDataError, match="ids.csv: has no column beside the id"):
        ingested(ratings, "csv", f"items={only_ids}")
    with pytest.raises(ConfigError, match="input.items: .*nowhere: no such file"):
        ingested(ratings, "csv", f"items={tmp_path}/nowhere")


def not_to_be_called(*arguments: object) -> None:
    raise AssertionError("the ratings were read")


def test_given_features_have_one_length(tmp_path: Path, ingested: Callable[..., Run]) -> None:
    text = "2 qid:10 1:1 2:2 #docid = a\n0 qid:10 3:3 #docid = b\n1 qid:11 1:5 #docid = a\noops\n"
    run = ingested(write(tmp_path, text, "train.txt"), "letor", "max_bad_share=0.5")
    assert rows(run, GIVEN_FEATURES) == [
        ("10", "10/a", [1.0, 2.0, 0.0]), ("10", "10/b", [0.0, 0.0, 3.0]),
        ("11", "11/a", [5.0, 0.0, 0.0]),
    ]  # fmt: skip
    assert rows(run, QUARANTINE, "line", "raw", "reason") == [(4, "oops", "malformed_row")]


def test_implicit_ratings_are_counted_and_no_fault(
    tmp_path: Path, ingested: Callable[..., Run]
) -> None:
    text = '"User-ID";"ISBN";"Book-Rating"\n"1";"a";"0"\n"1";"b";"7"\n"2";"a";"0"\n'
    run = ingested(write(tmp_path, text), "book-crossing", "max_bad_share=0")
    assert facts(run)["dropped_by_reason"] == {"implicit": 2}
    assert facts(run)["rows_in"] == 3
    # the levels of the format are the scale, also those that nobody gave
    assert sorted(row[:2] for row in rows(run, RATING_SCALE)) == [
        (i, float(i)) for i in range(1, 11)
    ]
    assert facts(run)["rating_scale"]["levels"] == 10
    assert [tuple(row) for row in with_ids(run).collect()] == [("1", "b", 7.0, None)]


def test_a_wrong_format_ends_the_run_before_it_begins(
    tmp_path: Path, ingested: Callable[..., Run]
) -> None:
    path = write(tmp_path, "1::1193::5::978300760\n", "ratings.dat")
    for chosen in ("csv", "movielens-100k", "parquet"):
        with pytest.raises(ConfigError, match="use input.format=movielens-dat") as caught:
            ingested(path, chosen)
        assert caught.value.exit_code == 2


def test_many_small_files_are_few_tasks(
    tmp_path: Path, spark: SparkSession, ingested: Callable[..., Run]
) -> None:
    folder = tmp_path / "training_set"
    folder.mkdir()
    for movie in range(1, 301):
        (folder / f"mv_{movie:07}.txt").write_text(
            f"{movie}:\n5,3,2005-09-06\n{movie},4,2005-09-07\n"
        )
    spark.sparkContext.setJobGroup("small files", "small files")
    run = ingested(folder, "netflix")
    # movie 5 is rated by user 5 twice, for the names of its users are the movies' too
    assert run.read(RATINGS).count() == 599
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("small files")]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    assert max(stage.numTasks for stage in stages if stage) < 64


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "format_name", "users", "items", "count"),
    [
        ("ml-100k/u.data", "movielens-100k", 943, 1682, 100_000),
        ("ml-1m/ratings_notime.dat.gz", "movielens-dat", 6040, 3706, 1_000_209),
        ("cystic-fibrosis/cfquery", "judgments", 4, 4819, 19_276),
        ("jester/jester-data-1.csv.gz", "jester", 24_983, 100, 1_810_455),
    ],
)
def test_real_data(
    data_file: Callable[[str], Path], ingested: Callable[..., Run], file: str, format_name: str,
    users: int, items: int, count: int,
) -> None:  # fmt: skip
    run = ingested(data_file(file), format_name)
    record = run.record("ingest") or {}
    assert facts(run)["rows_in"] == count
    assert [record["tables"][name] for name in ("users", "items", "ratings", "quarantine")] == [
        users, items, count, 0,
    ]  # fmt: skip
