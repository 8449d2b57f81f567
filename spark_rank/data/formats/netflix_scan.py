"""Fast scan of Netflix's training set: plain lines become pieces, all others are left over.

A plain line is a heading of digits and a colon, or a rating whose reading leaves no doubt: a user
number without leading zeros, an allowed digit, an existing day. What is left over goes with its
place and movie to the reader for all cases, `spark_rank.data.formats.netflix`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from spark_rank.data.contracts import Column, arrow_schema
from spark_rank.data.formats.netflix_records import lines_of_records, text_of
from spark_rank.data.pieces import (
    CHUNK_ROWS,
    PIECE_COLUMNS,
    PIECE_SCHEMA,
    Chunk,
    chunk_number,
    cut_chunk,
)

IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]

_DAY = 86_400
# chunks of this job beside those of judged rows
_SCANNED = 2
_RATING, _HEADING, _BLANK, _OTHER = range(4)
_ANY_HEADING = re.compile(rb"[ \t\n\x0b\f\r]*([0-9]+)[ \t\n\x0b\f\r]*:[ \t\n\x0b\f\r]*")

LEFT_COLUMNS = (
    Column("file", "bigint", "hash of the file's name"),
    Column("block", "bigint", "where the split begins, in bytes"),
    Column("row", "bigint", "line of the split, from 0; null for the split itself"),
    Column("raw", "binary", "the line"),
    Column("heading", "string", "the movie above it; of a split its last one"),
    Column("above", "boolean", "whether the movie is that of the splits before"),
    Column("lines", "bigint", "lines of the split"),
    Column("bytes", "bigint", "bytes of its rows, each with a separator"),
)
SCAN_COLUMNS = (*PIECE_COLUMNS, *LEFT_COLUMNS)
SCAN_SCHEMA = arrow_schema(SCAN_COLUMNS)


@dataclass(frozen=True)
class ScanJob:
    """What a worker needs to know.

    `allowed` tells of each digit whether it is a rating; `unheaded` holds the splits, as (file,
    block), whose first lines stand under no movie that can be read. With a `separator` the rows
    are records that it parts (`netflix_records`), else lines.
    """

    allowed: tuple[bool, ...]
    buckets: int
    separator: str | None = None
    unheaded: frozenset[tuple[int, int]] = frozenset()
    chunk_rows: int = CHUNK_ROWS


def borrowed_movie(file: int, block: int) -> str:
    """Return what stands for the movie of the splits before until it is known."""
    return f"?{file}:{block}"


@dataclass
class _Split:
    """Where the scan stands in a split."""

    file: int
    block: int
    lines: int = 0
    bytes: int = 0
    heading: str | None = None


@dataclass
class _Waiting:
    """Ratings that no chunk holds yet."""

    movies: dict[str, int] = field(default_factory=dict)
    parts: list[tuple[NDArray[np.integer], ...]] = field(default_factory=list)
    rows: int = 0

    def code(self, movie: str) -> int:
        return self.movies.setdefault(movie, len(self.movies))

    def chunk(self) -> Chunk:
        """Return the ratings as a chunk, and hold them no longer."""
        users, movies, ratings, days = map(np.concatenate, zip(*self.parts, strict=True))
        self.parts.clear()
        codes, ids = pd.factorize(users)
        return Chunk(
            pa.array(ids).cast(pa.string()),
            pa.array(list(self.movies), pa.string()),
            codes,
            movies,
            ratings.astype(np.float64),
            days.astype(np.int64) * _DAY,
        )


def scan_lines(batches: Iterator[pa.RecordBatch], job: ScanJob) -> Iterator[pa.RecordBatch]:
    """Turn rows (``value, file, block``, in order) into pieces, lines left over and splits.

    What `DataFrame.mapInArrow` calls. O(bytes).
    """
    split: _Split | None = None
    waiting, made = _Waiting(), 0
    for batch in batches:
        for part in _by_split(batch):
            place = (part.column("file")[0].as_py(), part.column("block")[0].as_py())
            if split is None or (split.file, split.block) != place:
                if split is not None:
                    yield _split_row(split)
                split = _Split(*place)
            for text, ends in _lines(part.column("value"), split, job):
                left = _scan_part(text, ends, split, waiting, job)
                if left:
                    yield _rows(left)
                if waiting.rows >= job.chunk_rows:
                    yield from _pieces(waiting, made, job)
                    waiting, made = _Waiting(), made + 1
    if split is not None:
        yield _split_row(split)
    if waiting.rows:
        yield from _pieces(waiting, made, job)


def _by_split(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    files, blocks = (batch.column(name).to_numpy() for name in ("file", "block"))
    changes = np.flatnonzero((np.diff(files) != 0) | (np.diff(blocks) != 0)) + 1
    edges = [0, *changes.tolist(), batch.num_rows]
    for start, stop in pairwise(edges):
        if stop > start:
            yield batch.slice(start, stop - start)


def _lines(
    values: pa.StringArray, split: _Split, job: ScanJob
) -> Iterator[tuple[ByteArray, NDArray[np.int32]]]:
    """Yield the lines of a part of a split: end to end in a text, and where each ends."""
    begins_file = split.block == 0 and split.bytes == 0
    text, ends = text_of(values)
    split.bytes += int(ends[-1] - ends[0]) + len(values) * len(job.separator or "\n")
    if job.separator is None:
        yield text, ends
    else:
        yield from lines_of_records(values, job.separator, begins_file)


def _scan_part(
    text: ByteArray, ends: NDArray[np.int32], split: _Split, waiting: _Waiting, job: ScanJob
) -> list[Mapping[str, object]]:
    """Take the plain lines of a part of a split to those waiting; return the others."""
    kinds, users, ratings, days = _read_lines(text, ends, np.array(job.allowed))
    above = split.heading
    movie = _movie_now(split, job)
    marks: list[int] = []
    codes = [-1 if movie is None else waiting.code(movie)]
    left: list[Mapping[str, object]] = []
    for place in np.flatnonzero((kinds == _HEADING) | (kinds == _OTHER)).tolist():
        line = text[ends[place] : ends[place + 1]].tobytes()
        bare = line.rstrip(b"\r")
        named = None
        if bare.rstrip(b" ").endswith(b":"):
            named = _ANY_HEADING.fullmatch(bare)
            split.heading = named[1].decode() if named else ""
            marks.append(place)
            codes.append(waiting.code(split.heading) if named else -1)
        if named is None:
            left.append(_left_row(line, split, place, split.heading))
    plain, movies, unknown = _under_headings(kinds, np.array(marks, np.int64), np.array(codes))
    for place in unknown.tolist():
        heading = above if not marks or place < marks[0] else ""
        left.append(_left_row(text[ends[place] : ends[place + 1]].tobytes(), split, place, heading))
    waiting.parts.append((users[plain], movies, ratings[plain], days[plain]))
    waiting.rows += len(plain)
    split.lines += len(kinds)
    return left


def _movie_now(split: _Split, job: ScanJob) -> str | None:
    if split.heading is not None:
        return split.heading or None
    # a file begins under no movie
    if split.block == 0 or (split.file, split.block) in job.unheaded:
        return None
    return borrowed_movie(split.file, split.block)


def _left_row(line: bytes, split: _Split, place: int, heading: str | None) -> Mapping[str, object]:
    return {
        "file": split.file,
        "block": split.block,
        "row": split.lines + place,
        "raw": line,
        "heading": heading,
        "above": heading is None and split.block > 0,
    }


def _split_row(split: _Split) -> pa.RecordBatch:
    row = {name: getattr(split, name) for name in ("file", "block", "heading", "lines", "bytes")}
    return _rows([row])


def _rows(rows: list[Mapping[str, object]]) -> pa.RecordBatch:
    columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in SCAN_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=SCAN_SCHEMA)


def _pieces(waiting: _Waiting, made: int, job: ScanJob) -> Iterator[pa.RecordBatch]:
    pieces = cut_chunk(waiting.chunk(), chunk_number(_SCANNED, made), job.buckets)
    rest = [f for f in SCAN_SCHEMA if f.name not in PIECE_SCHEMA.names]
    for piece in pieces:
        nulls = [pa.nulls(piece.num_rows, field.type) for field in rest]
        yield pa.RecordBatch.from_arrays([*piece.columns, *nulls], schema=SCAN_SCHEMA)


@njit(cache=True)
def _under_headings(
    kinds: ByteArray, marks: IntArray, codes: IntArray
) -> tuple[IntArray, NDArray[np.int32], IntArray]:
    """Return the places of ratings under a known movie, the movies' codes, and the other places.

    ``codes[0]`` is the movie before the first heading, at ``marks[0]``; -1 is an unknown one.
    """
    plain = np.empty(len(kinds), np.int64)
    movies = np.empty(len(kinds), np.int32)
    unknown = np.empty(len(kinds), np.int64)
    known = lost = above = 0
    for place in range(len(kinds)):
        if above < len(marks) and marks[above] == place:
            above += 1
        if kinds[place] != _RATING:
            continue
        if codes[above] < 0:
            unknown[lost] = place
            lost += 1
        else:
            plain[known], movies[known] = place, codes[above]
            known += 1
    return plain[:known].copy(), movies[:known].copy(), unknown[:lost].copy()


@njit(cache=True)
def _read_lines(
    text: ByteArray, ends: NDArray[np.int32], allowed: NDArray[np.bool_]
) -> tuple[ByteArray, IntArray, ByteArray, NDArray[np.int32]]:
    """Return the kind of every line, and user, rating and day of the ratings. O(bytes)."""
    lines = len(ends) - 1
    kinds = np.empty(lines, np.uint8)
    users = np.empty(lines, np.int64)
    ratings = np.empty(lines, np.uint8)
    days = np.empty(lines, np.int32)
    for i in range(lines):
        start, stop = ends[i], ends[i + 1]
        while stop > start and text[stop - 1] == 13:
            stop -= 1
        at, user = start, 0
        while at < stop and 48 <= text[at] <= 57 and at - start < 18:
            user = user * 10 + (text[at] - 48)
            at += 1
        digits = at - start
        if digits > 0 and stop - at == 1 and text[at] == 58:
            kinds[i] = _HEADING
            continue
        # user, a comma, a digit, a comma, a day
        if (
            digits > 0
            and (text[start] != 48 or digits == 1)
            and stop - at == 13
            and text[at] == 44
            and 48 <= text[at + 1] <= 57
            and text[at + 2] == 44
            and allowed[text[at + 1] - 48]
        ):
            day = _read_day(text, at + 3)
            if day != -1:
                kinds[i], users[i], ratings[i], days[i] = _RATING, user, text[at + 1] - 48, day
                continue
        kinds[i] = _BLANK
        for place in range(start, stop):
            if text[place] != 32:
                kinds[i] = _OTHER
    return kinds, users, ratings, days


@njit(cache=True)
def _read_day(text: ByteArray, at: int) -> int:
    """Return the day written YYYY-MM-DD, from 1970, or -1: none, or one before that."""
    if text[at + 4] != 45 or text[at + 7] != 45:
        return -1
    number = 0
    for place in (0, 1, 2, 3, 5, 6, 8, 9):
        digit = text[at + place]
        if digit < 48 or digit > 57:
            return -1
        number = number * 10 + (digit - 48)
    year, month, day = number // 10_000, number // 100 % 100, number % 100
    if year < 1970 or month < 1 or month > 12 or day < 1:
        return -1
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    length = 31 - (month in (4, 6, 9, 11))
    if month == 2:
        length = 29 if leap else 28
    if day > length:
        return -1
    # days before the month in a year that begins with March, and before the year
    moved = (month + 9) % 12
    since = year - (month <= 2)
    before = since * 365 + since // 4 - since // 100 + since // 400
    return before + (moved * 306 + 5) // 10 + day - 1 - 719_468
