"""Reads delimited text with quotes and a column mapping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import InputConfig
from spark_rank.data.formats.base import Reading
from spark_rank.data.formats.columns import choose_columns, named_roles
from spark_rank.data.formats.dialect import BLANKS, split_cells
from spark_rank.data.formats.lines import BOM, first_lines, not_blank, read_lines, split_starts
from spark_rank.data.formats.samples import read_samples
from spark_rank.data.formats.table_settings import complete_table, is_complete
from spark_rank.data.formats.values import read_number, read_times, typed
from spark_rank.errors import InputDataError
from spark_rank.session.filesystem import Filesystem


def read_csv(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read delimited text with quotes; columns by header name or by position.

    Files with different headers are read separately; files without any line are skipped.
    """
    encoding = settings.encoding or "utf-8"
    if not is_complete(settings):
        settings = complete_table(read_samples(Filesystem(spark), files, encoding), settings)
    heads = first_lines(spark, files, encoding)
    if not heads:
        raise InputDataError(f"{files[0]}: holds only blank lines: name a file with ratings")
    groups: dict[str, list[str]] = {}
    for file, line in heads.items():
        # without headers all files are read together
        groups.setdefault(line if settings.header else "", []).append(file)
    if not settings.header:
        _check_no_header(heads, settings)
    readings = []
    for group in groups.values():
        lines = read_lines(spark, group, encoding)
        rows = _parse(lines, group[0], heads[group[0]], settings)
        readings.append(Reading(rows, split_starts(lines)))
    return reduce(_union, readings)


def as_movielens_csv(settings: InputConfig) -> InputConfig:
    """Return the settings of ``userId,movieId,rating,timestamp`` with that header."""
    return replace(settings, delimiter=",", header=True, columns={}, decimal=".")


def read_movielens_csv(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read ``userId,movieId,rating,timestamp`` with that header."""
    return read_csv(spark, files, as_movielens_csv(settings))


def _parse(lines: DataFrame, file: str, first: str, settings: InputConfig) -> DataFrame:
    """Parse the lines of files with the same first line: the header, if there is one."""
    assert settings.separator is not None
    assert settings.time_unit is not None
    cells = split_cells(first, settings.separator)
    body, text = not_blank(lines), F.col("raw")
    if settings.header:
        body = body.where(F.ltrim("raw", F.lit(BOM)) != first)
    else:
        text = F.ltrim("raw", F.lit(BOM))
    places = choose_columns([cell.strip() for cell in cells], settings, file)
    schema = ", ".join([f"c{i} string" for i in range(len(cells))] + ["unparsed string"])
    options = {
        "sep": settings.separator,
        "escape": '"',
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": "unparsed",
    }
    line = _single_blanks(text) if settings.separator == BLANKS else text
    parsed = body.withColumn("fields", F.from_csv(line, schema, options))
    parts = {name: F.col(f"fields.c{place}") for name, place in places.items()}
    # records over several lines are not supported: each line has an odd number of quotes
    whole = F.length(F.regexp_replace("raw", '[^"]', "")) % 2 == 0
    return typed(
        parsed,
        parts,
        F.col("fields.unparsed").isNull() & whole,
        read_times(parts["timestamp"], settings.time_unit, settings.day_first)
        if "timestamp" in parts
        else None,
        rating=read_number(parts["rating"], settings.decimal or "."),
    )


def _single_blanks(text: Column) -> Column:
    """Replace every run of blanks and tabs outside quotes by a single blank."""
    parts = F.split(F.trim(text, F.lit(" \t")), '"')
    single = F.transform(
        parts,
        lambda part, i: F.when(i % 2 == 1, part).otherwise(F.regexp_replace(part, "[ \t]+", " ")),
    )
    return F.array_join(single, '"')


def _check_no_header(heads: dict[str, str], settings: InputConfig) -> None:
    """Raise `InputDataError` if only some files have a header: not all of them were sampled."""
    assert settings.separator is not None
    named = [
        file
        for file, line in heads.items()
        if len(named_roles(split_cells(line, settings.separator), {})) > 1
    ]
    if 0 < len(named) < len(heads):
        raise InputDataError(
            f"{named[0]} begins with a header and other files do not: give all files one or none, "
            "or name files of one kind with input.path"
        )


def _union(one: Reading, other: Reading) -> Reading:
    assert one.starts is not None
    assert other.starts is not None
    return Reading(one.rows.unionByName(other.rows), one.starts.unionByName(other.starts))
