"""The fast scan, against a plain loop: the ratings, the other lines and their positions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.data.formats.netflix_scan import ScanJob, borrowed_movie, scan_lines
from spark_rank.data.packing import unpack_integers, unpack_ratings, unpack_strings
from spark_rank.data.shares import shares_for

STARS = tuple(1 <= digit <= 5 for digit in range(10))
# value, file, block
Line = tuple[str, int, int]

GOOD = st.builds(
    "{},{},{}".format, st.integers(0, 10**18), st.integers(0, 9), st.dates(date(1960, 1, 1))
)
ODD = st.sampled_from(
    ["", "  ", "\r", "007,3,2005-09-06", "8,3,2005-02-30", "8,3,2000-02-29", "8,3,1900-02-29",
     "8,33,2005-09-06", "-8,3,2005-09-06", "8,3,2005-9-6  ", "8,3,2005-09-06\r\r", "oops:", ":",
     "8:,3,2005-09-06", "x,3,2005-09-06", "1234567890123456789,3,2005-09-06", "8,3,2005-09-06 ",
     "8,3", "8,é,2005-09-06", "9 :", " 9:\r", "9: ", "09:", "9:\t", "8,3,2005-00-10",
     "8,3,2005-13-10"]
)  # fmt: skip
HEADING = st.integers(1, 9).map("{}:".format)
OFTEN = st.builds("15{},3,2005-09-06".format, st.integers(0, 99))
LINES = st.lists(st.one_of(GOOD, OFTEN, HEADING, ODD), max_size=30)
# two files, the second split in two
PARTS = st.tuples(LINES, LINES, LINES)


def batches(lines: list[Line], size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(lines), size):
        values, files, blocks = zip(*lines[start : start + size], strict=True)
        columns = [pa.array(values, pa.string()), pa.array(files), pa.array(blocks)]
        yield pa.RecordBatch.from_arrays(columns, names=["value", "file", "block"])


def scanned(
    lines: list[Line], job: ScanJob, size: int
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], dict[tuple[int, int], tuple[Any, ...]]]:
    """Return ratings (user, movie, rating, time), lines left over, and splits."""
    ratings, left, splits = [], [], {}
    for batch in scan_lines(batches(lines, size), job):
        for row in batch.to_pylist():
            if row["share"] is not None:
                users = unpack_strings(row["users"]).to_pylist()
                columns = zip(
                    unpack_integers(row["user_codes"]), unpack_integers(row["item_codes"]),
                    unpack_ratings(row["ratings"]), unpack_integers(row["times"]), strict=True,
                )  # fmt: skip
                ratings += [(users[u], row["items"][i], r, t) for u, i, r, t in columns]
            elif row["lines"] is not None:
                splits[row["file"], row["block"]] = (row["lines"], row["heading"])
            else:
                names = ("file", "block", "row", "raw", "heading", "above")
                left.append(tuple(row[name] for name in names))
    return ratings, left, splits


def twin(
    lines: list[Line], allowed: tuple[bool, ...], unheaded: frozenset[tuple[int, int]]
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], dict[tuple[int, int], tuple[Any, ...]]]:
    ratings, left, splits = [], [], {}
    for text, *place in lines:
        file, block = place
        number, heading = splits.get((file, block), (0, None))
        bare = text.rstrip("\r")
        named = re.fullmatch(r"\s*([0-9]+)\s*:\s*", bare, re.ASCII)
        is_heading = bare.rstrip(" ").endswith(":")
        if is_heading:
            heading = named[1] if named else ""
        splits[file, block] = (number + 1, heading)
        if (is_heading and named) or not bare.strip(" "):
            continue
        rating = plain_rating(bare, allowed)
        movie = heading
        if heading is None and block and (file, block) not in unheaded:
            movie = borrowed_movie(file, block)
        if rating and movie:
            ratings.append((rating[0], movie, *rating[1:]))
        else:
            above = heading is None and block > 0
            left.append((file, block, number, text.encode(), heading, above))
    return ratings, left, splits


def plain_rating(text: str, allowed: tuple[bool, ...]) -> tuple[str, float, int] | None:
    found = re.fullmatch(r"(0|[1-9][0-9]{0,17}),([0-9]),([0-9]{4}-[0-9]{2}-[0-9]{2})", text)
    if not found or not allowed[int(found[2])]:
        return None
    try:
        day = datetime.strptime(found[3], "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    seconds = int(day.timestamp())
    return (found[1], float(found[2]), seconds) if seconds >= 0 else None


@given(
    parts=PARTS,
    size=st.integers(1, 40),
    chunk=st.integers(1, 40),
    lost=st.booleans(),
    allowed=st.sampled_from([STARS, (True,) * 10]),
)
def test_a_scan_is_its_twin(
    parts: tuple[list[str], ...], size: int, chunk: int, lost: bool, allowed: tuple[bool, ...]
) -> None:
    places = [(11, 0), (22, 0), (22, 700)]
    lines = [(t, *place) for part, place in zip(parts, places, strict=True) for t in part]
    unheaded = frozenset(places[2:] if lost else [])
    job = ScanJob(allowed, shares_for(3, 3), None, unheaded, chunk)
    found, expected = scanned(lines, job, size), twin(lines, allowed, unheaded)
    assert sorted(found[0]) == sorted(expected[0])
    assert sorted(found[1], key=lambda r: r[:3]) == sorted(expected[1], key=lambda r: r[:3])
    assert found[2] == expected[2]


@given(
    parts=PARTS,
    ends=st.lists(st.sampled_from(["\n", "\n", "\r\n", "\r"]), min_size=90, max_size=90),
    cuts=st.tuples(st.integers(0, 90), st.integers(0, 90)),
    size=st.integers(1, 40),
    chunk=st.integers(1, 40),
)
def test_records_of_many_lines_are_scanned_like_lines(
    parts: tuple[list[str], ...],
    ends: list[str],
    cuts: tuple[int, int],
    size: int,
    chunk: int,
) -> None:
    lines = [line.strip("\r\n") for part in parts for line in part]
    text = "".join(line + end for line, end in zip(lines, ends, strict=False))
    records = text.split("\n15")
    first, second = sorted(cuts)
    places = [(11, 0 if i < first else 300 if i < second else 700) for i in range(len(records))]
    rows = [(record, *place) for record, place in zip(records, places, strict=True)]
    # the same as lines; the end of a record is that of a line
    expected = []
    for number, (record, *place) in enumerate(rows):
        whole = record if number == 0 and place[1] == 0 else "15" + record
        for line in re.split("\r\n|\r|\n", whole + "\n")[:-1]:
            expected.append((line, *place))
    job = ScanJob(STARS, shares_for(3, 3), "\n15", chunk_rows=chunk)
    found, twins = scanned(rows, job, size), twin(expected, STARS, frozenset())
    assert sorted(found[0]) == sorted(twins[0])
    assert sorted(found[1], key=lambda r: r[:3]) == sorted(twins[1], key=lambda r: r[:3])
    assert found[2] == twins[2]


@pytest.mark.parametrize("split", [0, 5])
def test_bytes_that_are_no_text_are_left_over_as_they_are(split: int) -> None:
    value = pa.array([b"3:", b"8,3,2005-09-06", b"\xe9,3,2005-09-06"], pa.binary()).view(
        pa.string()
    )
    batch = pa.RecordBatch.from_arrays(
        [value, pa.array([1] * 3), pa.array([split] * 3)], names=["value", "file", "block"]
    )
    (row,) = [
        row
        for made in scan_lines(iter([batch]), ScanJob(STARS, shares_for(1, 1)))
        for row in made.select(["raw", "row", "heading"]).to_pylist()
        if row["raw"] is not None
    ]
    assert row == {"raw": b"\xe9,3,2005-09-06", "row": 2, "heading": "3"}
