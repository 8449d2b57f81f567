"""Scans Netflix's training set fast: plain lines become pieces, all others are returned.

A plain line is a heading of digits and a colon, or an unambiguous rating: a user number without
leading zeros, a valid digit, an existing day. All other lines go with their position and movie to
the general reader, `spark_rank.data.formats.netflix`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.data.formats.netflix_lines import HEADING, OTHER, read_lines, under_headings
from spark_rank.data.formats.netflix_records import lines_of_records, text_of
from spark_rank.data.pieces import (
    CHUNK_ROWS,
    PIECE_COLUMNS,
    PIECE_SCHEMA,
    Chunk,
    chunk_number,
    cut_chunk,
)
from spark_rank.data.shares import Shares
from spark_rank.tables.contract import Column, arrow_schema

IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]

_DAY = 86_400
# the job number of these chunks; the rows of other lines have another
_SCANNED = 2
_ANY_HEADING = re.compile(rb"[ \t\n\x0b\f\r]*([0-9]+)[ \t\n\x0b\f\r]*:[ \t\n\x0b\f\r]*")

LEFT_COLUMNS = (
    Column("file", "bigint", "hash of the file's name"),
    Column("block", "bigint", "start of the split, in bytes"),
    Column("row", "bigint", "line of the split, from 0; null for the split itself"),
    Column("raw", "binary", "the line"),
    Column("heading", "string", "the movie above the line; for a split its last movie"),
    Column("above", "boolean", "whether the movie is in an earlier split"),
    Column("lines", "bigint", "lines of the split"),
    Column("bytes", "bigint", "bytes of the split's rows, each with a separator"),
)
SCAN_COLUMNS = (*PIECE_COLUMNS, *LEFT_COLUMNS)
SCAN_SCHEMA = arrow_schema(SCAN_COLUMNS)


@dataclass(frozen=True)
class ScanJob:
    """The settings of a worker.

    `allowed` has, for each digit, whether it is a valid rating. `unheaded` holds the splits, as
    (file, block), whose first lines have no readable movie above them. With a `separator` the rows
    are records between separators (`netflix_records`), else lines.
    """

    allowed: tuple[bool, ...]
    shares: Shares
    separator: str | None = None
    unheaded: frozenset[tuple[int, int]] = frozenset()
    chunk_rows: int = CHUNK_ROWS


def borrowed_movie(file: int, block: int) -> str:
    """Return a placeholder for the movie of the earlier splits, until it is known."""
    return f"?{file}:{block}"


@dataclass
class _Split:
    """The state of the scan in a split."""

    file: int
    block: int
    lines: int = 0
    bytes: int = 0
    heading: str | None = None


@dataclass
class _Waiting:
    """Ratings that are not in a chunk yet."""

    movies: dict[str, int] = field(default_factory=dict)
    parts: list[tuple[NDArray[np.integer], ...]] = field(default_factory=list)
    rows: int = 0

    def code(self, movie: str) -> int:
        return self.movies.setdefault(movie, len(self.movies))

    def chunk(self) -> Chunk:
        """Return the ratings as a chunk, and free their parts."""
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
    """Turn rows (``value, file, block``, in order) into pieces, other lines and facts of splits.

    `DataFrame.mapInArrow` calls it. O(bytes).
    """
    split: _Split | None = None
    waiting, n_chunks = _Waiting(), 0
    for batch in batches:
        for part in _by_split(batch):
            place = (part.column("file")[0].as_py(), part.column("block")[0].as_py())
            if split is None or (split.file, split.block) != place:
                if split is not None:
                    yield _split_row(split)
                split = _Split(*place)
            for text, ends in _lines(part.column("value"), split, job):
                other_lines = _scan_part(text, ends, split, waiting, job)
                if other_lines:
                    yield _rows(other_lines)
                if waiting.rows >= job.chunk_rows:
                    yield from _pieces(waiting, n_chunks, job)
                    waiting, n_chunks = _Waiting(), n_chunks + 1
    if split is not None:
        yield _split_row(split)
    if waiting.rows:
        yield from _pieces(waiting, n_chunks, job)


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
    """Yield the lines of a part of a split: their bytes end to end, and the end of each."""
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
    """Add the plain lines of a part of a split to `waiting`; return the others."""
    kinds, users, ratings, days = read_lines(text, ends, np.array(job.allowed))
    above = split.heading
    movie = _movie_now(split, job)
    marks: list[int] = []
    codes = [-1 if movie is None else waiting.code(movie)]
    other_lines: list[Mapping[str, object]] = []
    for place in np.flatnonzero((kinds == HEADING) | (kinds == OTHER)).tolist():
        line = text[ends[place] : ends[place + 1]].tobytes()
        bare = line.rstrip(b"\r")
        named = None
        if bare.rstrip(b" ").endswith(b":"):
            named = _ANY_HEADING.fullmatch(bare)
            split.heading = named[1].decode() if named else ""
            marks.append(place)
            codes.append(waiting.code(split.heading) if named else -1)
        if named is None:
            other_lines.append(_left_row(line, split, place, split.heading))
    plain, movies, unknown = under_headings(kinds, np.array(marks, np.int64), np.array(codes))
    for place in unknown.tolist():
        heading = above if not marks or place < marks[0] else ""
        other_lines.append(
            _left_row(text[ends[place] : ends[place + 1]].tobytes(), split, place, heading)
        )
    waiting.parts.append((users[plain], movies, ratings[plain], days[plain]))
    waiting.rows += len(plain)
    split.lines += len(kinds)
    return other_lines


def _movie_now(split: _Split, job: ScanJob) -> str | None:
    if split.heading is not None:
        return split.heading or None
    # at the begin of a file there is no movie
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


def _pieces(waiting: _Waiting, n_chunks: int, job: ScanJob) -> Iterator[pa.RecordBatch]:
    pieces = cut_chunk(waiting.chunk(), chunk_number(_SCANNED, n_chunks), job.shares)
    other_fields = [f for f in SCAN_SCHEMA if f.name not in PIECE_SCHEMA.names]
    for piece in pieces:
        nulls = [pa.nulls(piece.num_rows, field.type) for field in other_fields]
        yield pa.RecordBatch.from_arrays([*piece.columns, *nulls], schema=SCAN_SCHEMA)
