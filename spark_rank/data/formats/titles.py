"""Reads titles of items: ``u.item``, ``movies.dat``, ``movies.csv``, ``movie_titles.txt``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.data.formats.lines import BOM, not_blank, read_lines
from spark_rank.errors import ConfigError
from spark_rank.session.filesystem import Filesystem

_YEAR_AT_END = r"\(([0-9]{4})\)\s*$"


@dataclass(frozen=True)
class TitleFormat:
    """One format: the pattern of a line, with groups for item, title and (Netflix) year."""

    pattern: str
    year_group: int | None = None
    title_group: int = 2
    quoted: bool = False


TITLE_FORMATS = {
    "movielens-dat": TitleFormat(r"^([^:]+)::(.+?)(?:::[^:]*)?$"),
    "movielens-100k": TitleFormat(r"^([^|]+)\|([^|]+)\|.*$"),
    # the title may contain commas
    "netflix": TitleFormat(r"^([0-9]+),([0-9]{4}|NULL),(.+)$", 2, 3),
    "movielens-csv": TitleFormat(r'^([^,]+),("(?:[^"]|"")*"|[^,"]*)(?:,.*)?$', quoted=True),
}


def read_titles(spark: SparkSession, files: list[str], format_name: str) -> DataFrame:
    """Return ``item_id, title, year``: a row per line, all null for an unreadable line.

    The year is a field of the file, or in parentheses at the end of the title; else it is null. A
    line is read as UTF-8 or, as in old files, as Latin-1.
    """
    title_format = TITLE_FORMATS[format_name]
    lines = not_blank(read_lines(spark, files, None))
    raw = F.ltrim("raw", F.lit(BOM))
    written = _group(raw, title_format, title_format.title_group)
    title = _unquoted(written) if title_format.quoted else written
    if title_format.year_group is None:
        year = F.regexp_extract(title, _YEAR_AT_END, 1)
    else:
        year = _group(raw, title_format, title_format.year_group)
    return lines.where(~raw.like("movieId,title%")).select(
        _group(raw, title_format, 1).alias("item_id"),
        title.alias("title"),
        year.try_cast("int").alias("year"),
    )


def detect_title_format(filesystem: Filesystem, file: str) -> str:
    """Return the format that fits the first line of a file, or raise `ConfigError`."""
    lines = filesystem.first_lines(file, "latin-1", 1)
    for name, title_format in TITLE_FORMATS.items():
        if lines and re.match(title_format.pattern, lines[0]):
            return name
    raise ConfigError(
        f"input.titles: cannot tell the format of {file}: name it with input.titles_format "
        f"({', '.join(TITLE_FORMATS)})"
    )


def _group(raw: Column, title_format: TitleFormat, number: int) -> Column:
    return F.nullif(F.regexp_extract(raw, title_format.pattern, number), F.lit(""))


def _unquoted(text: Column) -> Column:
    inner = F.regexp_replace(F.regexp_replace(text, '^"|"$', ""), '""', '"')
    return F.when(text.startswith('"'), inner).otherwise(text)
