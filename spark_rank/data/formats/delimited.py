"""Reads formats with one rating per line and fixed columns: MovieLens, EachMovie, Book-Crossing."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import InputConfig
from spark_rank.data.formats.base import Reader, Reading
from spark_rank.data.formats.lines import not_blank, read_lines, split_starts
from spark_rank.data.formats.values import read_seconds, typed

_BX_HEADER = '"User-ID"%'
# vote.txt has American dates, from 1995 to 1997, or ISO ones
_AMERICAN = r"^(\d{1,2}/\d{1,2}/)(\d{2})( |$)"
_AMERICAN_TIMES = ("M/d/yyyy H:mm:ss", "M/d/yyyy H:mm", "M/d/yyyy")


def delimited_reader(pattern: str, widths: tuple[int, ...]) -> Reader:
    """Return a reader of lines ``user, item, rating[, timestamp]``, split at a literal pattern."""

    def read(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
        lines = read_lines(spark, files, settings.encoding or "utf-8")
        fields = not_blank(lines).withColumn("fields", F.split("raw", pattern))
        names = ("user", "item", "rating", "timestamp")
        parts = {name: _field(position) for position, name in enumerate(names)}
        rows = typed(fields, parts, fields_ok=F.size("fields").isin(*widths))
        return Reading(rows, split_starts(lines))

    return read


def read_eachmovie(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read ``person movie score weight date…`` separated by blanks; the weight is not used."""
    lines = read_lines(spark, files, settings.encoding or "utf-8")
    fields = not_blank(lines).withColumn("fields", F.split(F.trim("raw"), r"\s+"))
    date = F.array_join(F.slice("fields", 5, 3), " ")
    parts = {"user": _field(0), "item": _field(1), "rating": _field(2), "timestamp": date}
    full_year = F.regexp_replace(date, _AMERICAN, "$119$2$3")
    american = [F.unix_timestamp(F.try_to_timestamp(full_year, F.lit(t))) for t in _AMERICAN_TIMES]
    seconds = F.coalesce(read_seconds(date), *american)
    rows = typed(fields, parts, F.size("fields").between(4, 7), seconds)
    return Reading(rows, split_starts(lines))


def read_book_crossing(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read ``"user";"ISBN";"rating"``, with a backslash before quotes inside a field."""
    lines = read_lines(spark, files, settings.encoding or "latin-1")
    options = {
        "sep": ";",
        "escape": "\\",
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": "unparsed",
    }
    schema = "user string, item string, rating string, unparsed string"
    fields = (
        not_blank(lines)
        .where(~F.col("raw").like(_BX_HEADER))
        .withColumn("fields", F.from_csv("raw", schema, options))
    )
    parts = {name: F.col(f"fields.{name}") for name in ("user", "item", "rating")}
    # a record that continues on the next line has an odd number of quotes
    bare = F.regexp_replace("raw", r"\\.", "")
    whole = F.length(F.regexp_replace(bare, '[^"]', "")) % 2 == 0
    rows = typed(fields, parts, F.col("fields.unparsed").isNull() & whole)
    return Reading(rows, split_starts(lines))


def _field(position: int) -> Column:
    return F.get(F.col("fields"), position)
