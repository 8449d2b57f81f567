"""Any table that the csv module writes is recognised and read back as it was."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spark_rank.config import InputConfig
from spark_rank.data.formats.dialect import (
    DELIMITERS,
    Dialect,
    MixedHeadersError,
    is_table,
    sniff,
    split_cells,
)
from spark_rank.data.formats.samples import HEAD, MOST_FILES, Sample, spread, whole_lines
from spark_rank.data.formats.table_settings import complete_table, table_words
from spark_rank.errors import ConfigError, InputDataError

SINGLE = [sign for sign in DELIMITERS if len(sign) == 1]
NAMES = [["user", "item", "rating"], ["User ID", "movie-id", "Stars"], ["userId", "ISBN", "Score"]]
# an id has letters, a rare one the signs that separate cells elsewhere
IDS = st.text("abcxyz0123456789-_é", min_size=1, max_size=8).filter(lambda t: not t.isdigit())
RARE = st.text("ab,;|\t \"'", min_size=1, max_size=6).filter(lambda t: t.strip(" \t") == t)
RATINGS = st.sampled_from(["1", "2", "3.5", "4", "0.5", "10"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[str]], str, bool]:
    """Return rows, what separates their cells, and whether the first names the columns."""
    delimiter = draw(st.sampled_from(SINGLE))
    rows = draw(st.lists(st.tuples(IDS, IDS, RATINGS), min_size=4, max_size=30))
    # where blanks separate, tabs do too, and the csv module puts no quotes around them
    rare = RARE.filter(lambda text: "\t" not in text) if delimiter == " " else RARE
    odd = draw(st.tuples(rare, IDS, RATINGS))
    header = draw(st.booleans())
    named = [draw(st.sampled_from(NAMES))] if header else []
    return [*named, *map(list, rows), list(odd)], delimiter, header


def written(rows: list[list[str]], **how: Any) -> list[str]:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n", **how).writerows(rows)
    return stream.getvalue().splitlines()


@given(tables(), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_a_table_of_any_dialect_is_read_back(
    table: tuple[list[list[str]], str, bool], quoting: int
) -> None:
    rows, delimiter, header = table
    lines = written(rows, delimiter=delimiter, quoting=quoting)
    assert sniff([lines]) == Dialect(delimiter, header)
    found = [split_cells(line, delimiter) for line in lines]
    if delimiter == " ":  # quotes keep runs of blanks, and nothing else does
        assume(all(not cell.endswith(" ") for row in rows for cell in row))
    assert found == rows


@given(tables())
def test_files_agree_in_any_order_and_number(table: tuple[list[list[str]], str, bool]) -> None:
    rows, delimiter, header = table
    names = rows[:1] if header else []
    body = rows[1:] if header else rows
    parts = [written(names + part, delimiter=delimiter) for part in (body, body[:2], body[2:])]
    assert {sniff(order) for order in (parts, parts[::-1], parts[:1])} == {
        Dialect(delimiter, header)
    }


@given(st.lists(st.tuples(IDS, IDS, RATINGS), min_size=1, max_size=9), st.data())
def test_runs_of_blanks_are_one(rows: list[tuple[str, ...]], data: st.DataObject) -> None:
    runs = st.text(" \t", min_size=1, max_size=4)
    lines = [data.draw(runs) + "".join(c + data.draw(runs) for c in row) for row in rows]
    assert [split_cells(line, " ") for line in lines] == [list(row) for row in rows]


@pytest.mark.parametrize(
    ("text", "delimiter", "header"),
    [
        ("1 2 3.5\n1 3 4\n", " ", False),
        ("1\t2\t3\t881250949\n", "\t", False),
        ("1;2,5;3,5\n2;2,5;4,0\n", ";", False),
        ("1,2,3\n", ",", False),
        ("user,item,rating\n", ",", True),
        ("a::b::3\n", "::", False),
        ("u, i, 3\nv, j, 4\n", ",", False),
        ("u|Hello, world; how are you|3\nv|What|4\n", "|", False),
        ("who,what,stars\nu,i,3\n", ",", True),
        ("1,2,oops\n1,3,4\n1,4,5\n", ",", False),
        ("userId;when;movieId;rating\n1;2020-01-01 12:00:00;2;3\n", ";", True),
    ],
)
def test_dialects_of_small_files(text: str, delimiter: str, header: bool) -> None:
    assert sniff([text.splitlines()]) == Dialect(delimiter, header)


def test_what_is_no_table() -> None:
    for text in ("hello", "a,b\nc,d", "This is a data set.", "x" * 300_000, '"'):
        assert sniff([text.splitlines()]) is None
        assert not is_table(text.splitlines(), ",", {})
    assert sniff([]) is None
    assert sniff([[]]) is None


def test_what_is_set_is_not_looked_for() -> None:
    lines = ["1,2;3,4;5", "1,2;3,4;5"]
    assert sniff([lines], ",", True) == Dialect(",", True)
    assert sniff([lines], header=True) == Dialect(";", True)
    assert sniff([["who;what;how", "u;i;good"]], columns={"user": "who"}) == Dialect(";", True)


def test_headers_that_contradict_each_other() -> None:
    with pytest.raises(MixedHeadersError) as caught:
        sniff([["1,2,3"], ["user,item,rating", "1,2,3"]])
    assert (caught.value.with_header, caught.value.without) == (1, 0)


@given(st.text("ab\r\n", max_size=30), st.integers(1, 30))
def test_only_whole_lines_are_looked_at(text: str, size: int) -> None:
    every = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line]
    found = whole_lines(text.encode()[:size], size, "utf-8")
    assert list(found[:-1]) == every[: len(found) - 1] if found else True
    assert whole_lines(text.encode(), HEAD, "utf-8") == tuple(every)


def test_a_mark_and_odd_bytes_are_no_obstacle() -> None:
    assert whole_lines("\ufeffa,b\r\n\r\nJosé".encode(), HEAD, "utf-8") == ("a,b", "José")
    assert whole_lines(b"a,\xff\n", HEAD, "utf-8") == ("a,\ufffd",)


@given(st.lists(st.text("abc", min_size=1, max_size=4), unique=True, min_size=1, max_size=60))
def test_which_files_are_looked_at_follows_from_their_names(names: list[str]) -> None:
    found = spread(names)
    assert found == spread(names[::-1])
    assert len(found) == len(set(found)) == min(len(names), MOST_FILES)
    assert {found[0], found[-1]} == {min(names), max(names)}


def completed(*texts: str, **settings: Any) -> tuple[InputConfig, str]:
    samples = [Sample(f"{i}.csv", tuple(t.splitlines())) for i, t in enumerate(texts)]
    found = complete_table(samples, InputConfig(format="csv", **settings))
    return found, table_words(samples, found)


def test_a_reading_is_told_in_words() -> None:
    assert completed("1\t2\t3\t1600000000123\n")[1] == (
        "delimiter tab, no header, columns user, item, rating, timestamp by position, "
        "times in milliseconds"
    )
    assert completed("User ID;movie;Stars;why\n1;2;3,5;so\n")[1] == (
        "delimiter semicolon, header, columns User ID, movie, Stars, 1 more not read, decimal comma"
    )


def test_a_fourth_column_without_a_name_is_a_time_only_where_it_looks_like_one() -> None:
    assert completed("1 2 3.5 1\n1 3 4 7\n")[0].columns == {"timestamp": None}
    assert completed("1 2 3.5 881250949\n")[0].columns == {}
    assert completed("1 2 3.5 2005-09-06\n")[0].columns == {}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["1,2,3\n", "1;2;3\n"], r"0\.csv is delimited by comma and 1\.csv by semicolon"),
        (["1,2,3\n", "user,item,rating\n"], r"1\.csv begins with a header and 0\.csv does not"),
        (["hello\nworld\n"], "does not have three columns by tab, double colon"),
        (["1,2,good\n2,3,bad\n"], r"third column, as in 'good', holds no ratings: .*input.columns"),
        (["user,user_id,item,rating\n1,2,3,4\n"], "several columns that may hold the user: user"),
        (['"user"\t"item"\t"rating"\n"1"\t"u"\t"i"\t3\n'], "names 3 columns, its lines have 4"),
        ([""], "holds only blank lines"),
        (["1,2,3,03/04/2020\n"], "use --set input.day_first=true"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_one_line(texts: list[str], words: str) -> None:
    with pytest.raises((ConfigError, InputDataError), match=words) as caught:
        completed(*texts)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["User ID", "User_ID", "userId", "user-id", "USERID", "user", "customer_id", "uid"]
)
def test_names_are_alike_by_their_letters(name: str) -> None:
    found, words = completed(f"{name},Movie ID,RATING,Unix-Time\n1,2,3,4\n")
    assert found.header
    assert f"columns {name}, Movie ID, RATING, Unix-Time" in words
