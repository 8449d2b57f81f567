"""Any text, however malformed, gives the rows that a plain loop counts."""

from __future__ import annotations

import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_rank.config import InputConfig
from spark_rank.data.formats import read_ratings
from spark_rank.data.formats.lines import with_line
from spark_rank.data.quality import with_reason
from spark_rank.session.session import runtime_setting

Rating = tuple[str, str, float]
Rows = Iterator[tuple[int, str]]


def row_per_line(lines: list[str]) -> Rows:
    for number, line in enumerate(lines, start=1):
        if line.strip(" "):
            yield number, line


def row_per_line_below_the_header(lines: list[str]) -> Rows:
    return (row for row in row_per_line(lines) if row[0] > 1)


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def row_per_joke(lines: list[str]) -> Rows:
    for place, line in row_per_line(lines):
        count, *values = line.split(",")
        rated = sum(number(value) != 99 for value in values)
        yield from [(place, line)] * (rated if number(count) == rated else 1)


def row_per_score(lines: list[str]) -> Rows:
    for place, line in row_per_line_below_the_header(lines):
        cells = line.split("\t")
        scores = sum(bool(cell.strip(" ")) for cell in cells[2:])
        yield from [(place, line)] * (scores if len(cells) == 4 else 1)


def row_per_digit(lines: list[str]) -> Rows:
    tag = ""
    for place, line in enumerate(lines, start=1):
        begin = re.match(r"QN|[A-Z]{2}(?=[ \t]|$)", line)
        tag = begin[0] if begin else tag
        if line.startswith("QN") and not re.match(r"QN[ \t]+[^ \t]", line):
            yield place, line
        elif tag == "RD" and line.strip(" "):
            judged = re.fullmatch(r"(RD)?((?:[ \t]+[0-9]+[ \t]+[0-9]+)+)[ \t]*", line)
            scores = "".join(judged[2].split()[1::2]) if judged else "?"
            yield from [(place, line)] * len(scores)


@dataclass(frozen=True)
class Sample:
    """Lines of a format: the first, valid ones with their values, and parts of broken ones."""

    head: list[str]
    good: Callable[[int, int, int], str]
    rating: Callable[[int, int, int], Rating]
    signs: str
    rows: Callable[[list[str]], Rows]


def plain(user: int, item: int, stars: int) -> Rating:
    return str(user), str(item), float(stars)


SAMPLES = {
    "movielens-100k": Sample([], "{}\t{}\t{}\t881250949".format, plain, "12.\t -x", row_per_line),
    "movielens-dat": Sample([], "{}::{}::{}".format, plain, "12.:é -", row_per_line),
    "movielens-csv": Sample(
        ["userId,movieId,rating"], "{},{},{}".format, plain, '12,. "-x',
        row_per_line_below_the_header,
    ),
    "csv": Sample(
        ["item,user,rating,note"], '{1},"{0}",{2},"a ""b"", c"'.format, plain, "1,\"'é \\\t-",
        row_per_line_below_the_header,
    ),
    "book-crossing": Sample(
        ['"User-ID";"ISBN";"Book-Rating"'], '"{}";"{}";"{}"'.format, plain, '12";\\ &',
        row_per_line_below_the_header,
    ),
    "eachmovie": Sample(
        [], "{} {}\t0.{} 1 1996-03-01".format,
        lambda user, item, stars: (str(user), str(item), stars / 10), "12. \t-:/", row_per_line,
    ),
    "letor": Sample(
        [], "{2} qid:{0} 1:0.5 3:1 # docid = {1}".format,
        lambda user, item, stars: (str(user), f"{user}/{item}", float(stars)), "1: #qid-.x",
        row_per_line,
    ),
    "jester": Sample(
        [], "1,99,{2},99.0".format, lambda user, item, stars: ("", "2", float(stars)), "129,.- x",
        row_per_joke,
    ),
    "judgments": Sample(
        ["query\tdoc\ta\tb"], "{}\t{}\t{}\t".format,
        lambda user, item, stars: ("a", f"{user}/{item}", float(stars)), "12\t x.",
        row_per_score,
    ),
    "judgments as cfquery": Sample(
        ["QN 1", "RD"], "QN {}\nRD {} {}".format,
        lambda user, item, stars: ("1", f"{user}/{item}", float(stars)), "12 RDQN\t",
        row_per_digit,
    ),
}  # fmt: skip
GOOD = st.tuples(st.integers(1, 30), st.integers(1, 30), st.sampled_from([2, 4]))


@pytest.mark.parametrize("name", SAMPLES)
@hypothesis.settings(max_examples=2)
@hypothesis.given(data=st.data(), end=st.sampled_from(["\n", "\r\n"]), last=st.booleans())
def test_every_line_becomes_the_rows_that_a_plain_loop_counts(
    spark: SparkSession, name: str, data: st.DataObject, end: str, last: bool
) -> None:
    sample = SAMPLES[name]
    broken = st.text(st.sampled_from(sample.signs), max_size=12)
    drawn = data.draw(st.lists(st.one_of(GOOD, broken, broken), min_size=20, max_size=60))
    texts = [line if isinstance(line, str) else sample.good(*line) for line in drawn]
    lines = [line for text in [*sample.head, *texts] for line in text.split("\n")]
    config = InputConfig(format=name.split(maxsplit=1)[0])  # type: ignore[arg-type]
    with (
        tempfile.TemporaryDirectory() as folder,
        runtime_setting(spark, "spark.sql.files.maxPartitionBytes", "300"),
    ):
        path = Path(folder) / "text"
        path.write_bytes((end.join(lines) + (end if last else "")).encode())
        reading = read_ratings(spark, [str(path)], config)
        assert reading.starts is not None
        found = with_line(with_reason(reading.rows, config), reading.starts).collect()
    assert Counter((row["line"], row["raw"]) for row in found) == Counter(sample.rows(lines))
    kept = [row for row in found if row["reason"] is None]
    assert all(math.isfinite(row["rating"]) for row in kept)
    # jester's users are lines
    read = Counter(
        ("" if name == "jester" else row["user_id"], row["item_id"], row["rating"]) for row in kept
    )
    assert read >= Counter(sample.rating(*line) for line in drawn if not isinstance(line, str))
