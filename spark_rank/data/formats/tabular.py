"""Delimited text with quotes and a column mapping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import InputConfig
from spark_rank.config.values import suggestion
from spark_rank.data.formats.base import Reading
from spark_rank.data.formats.lines import BOM, first_lines, not_blank, read_lines, split_starts
from spark_rank.data.formats.values import split_cells, typed
from spark_rank.errors import ConfigError, InputDataError

# what users call the four columns when the configuration does not say
USUAL_NAMES = {
    "user": ("user", "user_id", "userid", "customer", "customer_id"),
    "item": ("item", "item_id", "itemid", "movie", "movie_id", "movieid", "product_id"),
    "rating": ("rating", "score", "stars", "value"),
    "timestamp": ("timestamp", "time", "ts", "unix_time"),
}


def read_csv(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read delimited text with quotes; columns by header name or by position.

    Files whose headers differ are read each by its own; files without any line are passed over.
    """
    encoding = settings.encoding or "utf-8"
    heads = first_lines(spark, files, encoding)
    if not heads:
        raise InputDataError(f"{files[0]}: holds no line but blank ones: there is nothing to read")
    groups: dict[str, list[str]] = {}
    for file, line in heads.items():
        # without headers all files are of one kind
        groups.setdefault(line if settings.header else "", []).append(file)
    readings = []
    for group in groups.values():
        lines = read_lines(spark, group, encoding)
        rows = _parse(lines, group[0], heads[group[0]], settings)
        readings.append(Reading(rows, split_starts(lines)))
    return reduce(_union, readings)


def read_movielens_csv(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read ``userId,movieId,rating,timestamp`` with that header."""
    return read_csv(spark, files, replace(settings, delimiter=",", header=True, columns={}))


def _parse(lines: DataFrame, file: str, first: str, settings: InputConfig) -> DataFrame:
    """Parse lines of files that begin with the same line: a header, where there is one."""
    cells = split_cells(first, settings.separator)
    body = not_blank(lines)
    if settings.header:
        body = body.where(F.ltrim("raw", F.lit(BOM)) != first)
        positions = {name: position for position, name in enumerate(map(str.strip, cells))}
    else:
        positions = {str(position): position for position in range(len(cells))}
    chosen = choose_columns(positions, settings, file)
    if settings.header:
        _check_names(chosen, cells, file)
    schema = ", ".join([f"c{i} string" for i in range(len(cells))] + ["unparsed string"])
    options = {
        "sep": settings.separator,
        "escape": '"',
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": "unparsed",
    }
    parsed = body.withColumn("fields", F.from_csv("raw", schema, options))
    parts = {name: F.col(f"fields.c{positions[column]}") for name, column in chosen.items()}
    # a record over several lines is not read: each of its lines has an odd number of quotes
    whole = F.length(F.regexp_replace("raw", '[^"]', "")) % 2 == 0
    return typed(parsed, parts, fields_ok=F.col("fields.unparsed").isNull() & whole)


def _check_names(chosen: dict[str, str], cells: Sequence[str], file: str) -> None:
    names = [cell.strip() for cell in cells]
    for name, column in chosen.items():
        if names.count(column) > 1:
            raise ConfigError(
                f"input.columns.{name}: {file} has two columns {column!r} and nothing tells which "
                "is meant: rename one"
            )


def _union(one: Reading, other: Reading) -> Reading:
    assert one.starts is not None
    assert other.starts is not None
    return Reading(one.rows.unionByName(other.rows), one.starts.unionByName(other.starts))


def choose_columns(positions: dict[str, int], settings: InputConfig, file: str) -> dict[str, str]:
    """Return which input column is user, item, rating and (where there is one) timestamp."""
    chosen = {}
    for name, usual in USUAL_NAMES.items():
        if name in settings.columns:
            wanted = settings.columns[name]
            if wanted is None:
                continue
            if wanted not in positions:
                hint = suggestion(wanted, positions)
                raise ConfigError(f"input.columns.{name}: {file} has no column {wanted!r} ({hint})")
            chosen[name] = wanted
            continue
        by_position = str(list(USUAL_NAMES).index(name)) if not settings.header else None
        found = [c for c in positions if c.lower() in usual or c == by_position]
        if found:
            chosen[name] = found[0]
        elif name != "timestamp":
            raise ConfigError(
                f"input.columns.{name}: cannot tell which column of {file} holds the {name}: name "
                f"one of {', '.join(positions) or '(there are no columns)'}"
            )
    return chosen
