"""Tables with a column mapping: delimited text with quotes, and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_rank.config import InputConfig
from spark_rank.config.values import suggestion
from spark_rank.data.filesystem import java_reason, literal
from spark_rank.data.formats.base import Reading
from spark_rank.data.formats.lines import BOM, first_lines, not_blank, read_lines, split_starts
from spark_rank.data.formats.values import split_cells, typed
from spark_rank.errors import ConfigError, InputDataError

_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)

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


def _union(one: Reading, other: Reading) -> Reading:
    assert one.starts is not None
    assert other.starts is not None
    return Reading(one.rows.unionByName(other.rows), one.starts.unionByName(other.starts))


def read_parquet(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read a Parquet table; ids of any type become text, ratings doubles."""
    try:
        frame = spark.read.parquet(*map(literal, files))
    except (PySparkException, Py4JJavaError) as error:
        raise InputDataError(
            f"{files[0]}: cannot be read as Parquet: {java_reason(error)}"
        ) from None
    chosen = choose_columns({name: i for i, name in enumerate(frame.columns)}, settings, files[0])
    _check_parquet_types(frame, chosen)
    sourced = frame.select(
        F.col("_metadata.file_path").alias("source"),
        F.lit(0).cast("bigint").alias("block"),
        F.col("_metadata.row_index").alias("row"),
        F.to_json(F.struct(*[_column(name) for name in frame.columns])).alias("raw"),
        F.lit(True).alias("text_ok"),
        *[
            _plain(frame.schema[column], name).alias(f"part_{name}")
            for name, column in chosen.items()
        ],
    )
    parts = {name: F.col(f"part_{name}") for name in chosen}
    return Reading(typed(sourced, parts, fields_ok=F.lit(True)), None)


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


def _check_parquet_types(frame: DataFrame, chosen: dict[str, str]) -> None:
    for name, column in chosen.items():
        kind = frame.schema[column].dataType
        if not isinstance(kind, (T.NumericType, T.StringType, T.BooleanType, *_TIMES)):
            raise ConfigError(
                f"input.columns.{name}: column {column!r} is {kind.simpleString()}: "
                "a plain number or text is needed"
            )


def _plain(field: T.StructField, name: str) -> Column:
    """Return a Parquet column as text that reads like the value: an id 5.0 is 5, a time seconds."""
    column = _column(field.name)
    if isinstance(field.dataType, _TIMES):
        return F.unix_timestamp(column.cast("timestamp")).cast("string")
    if name != "rating" and isinstance(field.dataType, (T.DoubleType, T.FloatType)):
        # whole numbers become floats where a column had gaps
        whole = column.try_cast("bigint")
        return F.when(column == whole, whole.cast("string")).otherwise(column.cast("string"))
    return column.cast("string")


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")
