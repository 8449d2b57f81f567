"""The fast scan of Netflix's text in Spark, and the lines that it cannot read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from spark_rank.config import InputConfig
from spark_rank.data.formats.base import Reading
from spark_rank.data.formats.lines import line_text, not_blank
from spark_rank.data.formats.netflix import parse_headed
from spark_rank.data.formats.netflix_records import find_separator
from spark_rank.data.formats.netflix_scan import SCAN_COLUMNS, ScanJob, borrowed_movie, scan_lines
from spark_rank.data.quality import allowed_ratings
from spark_rank.data.shares import Shares
from spark_rank.errors import InputDataError
from spark_rank.session.files import FileInfo
from spark_rank.session.filesystem import literal
from spark_rank.session.workers import by_workers
from spark_rank.stages.ingest_pieces import PACKED
from spark_rank.store.run import Run
from spark_rank.tables.contract import ddl
from spark_rank.wording import count_of

# a function that writes a table under a name and returns the written table
Keep = Callable[[DataFrame, str], DataFrame]
_PLACE = ("file", "block")
_FACTS = ("heading", "lines", "bytes")
# a record in a smaller file is short enough: only larger files are searched for the separator
_LARGE = 2**24
_HEAD = 2**16
_SPLITS = pa.schema([
    ("file", pa.int64()), ("block", pa.int64()), ("source", pa.string()),
    ("lines_before", pa.int64()), ("heading_before", pa.string()),
])  # fmt: skip


def scan_netflix(
    infos: Sequence[FileInfo], settings: InputConfig, shares: Shares, run: Run, keep: Keep
) -> tuple[DataFrame, Reading | None]:
    """Return the pieces of all plain lines, and the other lines, if any, as rows to be judged.

    A split that begins in the middle of a movie uses a placeholder for the movie until the splits
    before it are known. If they have no readable heading, the text is scanned again. If the records
    are not the whole text, it is scanned again line by line.
    """
    files = [info.path for info in infos]
    job = ScanJob(_allowed_digits(settings), shares, _separator(infos, run))
    while True:
        work = partial(scan_lines, job=job)
        text = _text(files, job.separator, run)
        scanned = keep(by_workers(text, work, ddl(SCAN_COLUMNS)), "scanned")
        splits = scanned.where("lines is not null").select(*_PLACE, *_FACTS).collect()
        if job.separator is not None and not _is_whole(splits, infos, job.separator):
            job = replace(job, separator=None)
            continue
        before = _before(splits)
        pieces = scanned.where("share is not null")
        movies = {borrowed_movie(*place): movie for place, (_, movie) in before.items()}
        begun_within = any(block for _, block in before)
        names = _borrowed_names(pieces) if begun_within else []
        borrowed = {name: movies[name] for name in names}
        lost = [place for place in before if not borrowed.get(borrowed_movie(*place), "known")]
        if not lost:
            break
        job = replace(job, unheaded=job.unheaded | frozenset(lost))
    known_movies = {name: movie for name, movie in borrowed.items() if movie}
    left = scanned.where("raw is not null")
    # the names of files are only read if lines are left: each of them costs a call
    rows = None if left.isEmpty() else _left_over(left, files, before, settings, run)
    return _with_movies(pieces, known_movies), rows


def _separator(infos: Sequence[FileInfo], run: Run) -> str | None:
    """Return the separator of records; None to read lines, as for packed text."""
    if any(info.path.endswith(PACKED) for info in infos):
        return None
    largest = max(infos, key=lambda info: info.size)
    looked_at = [info.path for info in infos if info.size > _LARGE] or [largest.path]
    return find_separator([run.files.head(path, _HEAD) for path in looked_at])


def _text(files: Sequence[str], separator: str | None, run: Run) -> DataFrame:
    reader = run.spark.read if separator is None else run.spark.read.option("lineSep", separator)
    return reader.text([literal(file) for file in files]).select(
        "value",
        F.xxhash64(F.input_file_name()).alias("file"),
        F.input_file_block_start().alias("block"),
    )


def _is_whole(splits: Iterable[Row], infos: Sequence[FileInfo], separator: str) -> bool:
    """Tell whether the records are the whole text.

    Spark does not return a separator at the very end of a file, nor a byte order mark.
    """
    expected = sum(info.size + len(separator) for info in infos if info.size)
    return sum(row["bytes"] for row in splits) == expected


def _allowed_digits(settings: InputConfig) -> tuple[bool, ...]:
    levels, low, high = allowed_ratings(settings)
    return tuple(low <= d <= high and (not levels or float(d) in levels) for d in range(10))


def _borrowed_names(pieces: DataFrame) -> list[str]:
    names = pieces.select(F.explode("items").alias("name")).where("startswith(name, '?')")
    return [row["name"] for row in names.distinct().collect()]


def _before(splits: Iterable[Row]) -> dict[tuple[int, int], tuple[int, str | None]]:
    """Return the number of lines before every split in its file, and the last heading there."""
    before: dict[tuple[int, int], tuple[int, str | None]] = {}
    ordered = sorted(splits, key=lambda row: (row["file"], row["block"]))
    for file, of_file in groupby(ordered, key=lambda row: row["file"]):
        lines, heading = 0, None
        for row in of_file:
            before[file, row["block"]] = lines, heading
            lines += row["lines"]
            heading = heading if row["heading"] is None else row["heading"]
    return before


def _with_movies(pieces: DataFrame, movies: Mapping[str, str]) -> DataFrame:
    """Replace placeholders by movies; there is at most one placeholder per split."""
    if not movies:
        return pieces
    names = F.create_map(*[F.lit(text) for pair in movies.items() for text in pair])
    named = F.transform("items", lambda item: F.coalesce(names[item], item))
    borrows = F.exists("items", lambda item: item.startswith("?"))
    return pieces.withColumn("items", F.when(borrows, named).otherwise(F.col("items")))


def _left_over(
    lines: DataFrame,
    files: Sequence[str],
    before: Mapping[tuple[int, int], tuple[int, str | None]],
    settings: InputConfig,
    run: Run,
) -> Reading:
    sources = _sources(files, run)
    unknown = {file for file, _ in before} - sources.keys()
    if unknown:
        raise InputDataError(
            f"{len(unknown):,} of {count_of(len(files), 'file')} read under another name than "
            "listed: the input seems to have changed while it was read: start again"
        )
    rows = [
        dict(zip(_SPLITS.names, (*place, sources[place[0]], *facts), strict=True))
        for place, facts in before.items()
    ]
    splits = run.spark.createDataFrame(pa.Table.from_pylist(rows, _SPLITS))
    raw, readable = line_text(F.col("raw").cast("string"), settings.encoding or "utf-8")
    heading = F.when(F.col("above"), F.col("heading_before")).otherwise(F.col("heading"))
    named = (
        lines.drop("lines")
        .join(F.broadcast(splits), list(_PLACE))
        .select(
            "source",
            "block",
            "row",
            raw.alias("raw"),
            readable.alias("text_ok"),
            heading.alias("heading"),
        )
    )
    starts = splits.select("source", "block", F.lit(0).alias("first_row"), "lines_before")
    return Reading(parse_headed(not_blank(named)), starts)


def _sources(files: Sequence[str], run: Run) -> dict[int, str]:
    """Return the names of the files in the quarantine, by the hash of their names in the scan."""
    uris = [run.files.uri(file) for file in files]
    # Spark writes the name of a local file with three slashes or with one
    names = [{"uri": uri, "name": name} for uri in uris
             for name in {uri, re.sub("^file:/(?!/)", "file:///", uri)}]  # fmt: skip
    hashed = run.spark.createDataFrame(pa.Table.from_pylist(names))
    rows = hashed.select("uri", F.xxhash64("name").alias("file")).collect()
    return {row["file"]: row["uri"] for row in rows}
