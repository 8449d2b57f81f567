"""Rating files in their native formats: each becomes the same columns, unparsable parts as null.

A parsed row has ``source, raw, utf8_ok, fields_ok, user_id, item_id, rating, timestamp,
timestamp_ok``; `spark_rank.data.quality` says which rows are good and why the others are not.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_rank.config import InputConfig
from spark_rank.config.values import suggestion
from spark_rank.data.filesystem import Filesystem, java_reason, literal
from spark_rank.errors import ConfigError, InputDataError

_BOM = "\ufeff"
_NUMBER = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)$"
_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)

# what users call the four columns when the configuration does not say
USUAL_NAMES = {
    "user": ("user", "user_id", "userid", "customer", "customer_id"),
    "item": ("item", "item_id", "itemid", "movie", "movie_id", "movieid", "product_id"),
    "rating": ("rating", "score", "stars", "value"),
    "timestamp": ("timestamp", "time", "ts", "unix_time"),
}


@dataclass(frozen=True)
class Format:
    """How one format is read."""

    example: str
    read: Callable[[SparkSession, Sequence[str], InputConfig], DataFrame]


def read_ratings(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> DataFrame:
    """Return the parsed rows of `files`; blank lines are not rows."""
    return FORMATS[settings.format].read(spark, files, settings)


def delimited_reader(
    pattern: str, widths: tuple[int, ...]
) -> Callable[[SparkSession, Sequence[str], InputConfig], DataFrame]:
    """Return a reader of ``user, item, rating[, timestamp]`` lines split at a literal pattern."""

    def read(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> DataFrame:
        fields = F.split(F.col("raw"), pattern)
        lines = _read_lines(spark, files).withColumn("fields", fields)
        parts = {
            name: F.get(F.col("fields"), position) for position, name in enumerate(USUAL_NAMES)
        }
        return _typed(lines, parts, fields_ok=F.size("fields").isin(*widths))

    return read


def read_csv(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> DataFrame:
    """Read delimited text with quotes; columns by header name or by position.

    Files whose headers differ are read each by its own; files without any line are passed over.
    """
    first_lines = _first_lines(spark, files)
    if not first_lines:
        raise InputDataError(f"{files[0]}: holds no line but blank ones: there is nothing to read")
    if not settings.header:
        return _read_csv_group(spark, list(first_lines), next(iter(first_lines.values())), settings)
    by_header: dict[str, list[str]] = {}
    for file, line in first_lines.items():
        by_header.setdefault(line, []).append(file)
    parts = [_read_csv_group(spark, group, line, settings) for line, group in by_header.items()]
    return reduce(DataFrame.unionByName, parts)


def _read_csv_group(
    spark: SparkSession, files: Sequence[str], first_line: str, settings: InputConfig
) -> DataFrame:
    """Read files that begin with the same line, a header; or any files, where there is none."""
    first = first_line.lstrip(_BOM)
    cells = next(csv.reader(io.StringIO(first), delimiter=settings.separator), [])
    lines = _read_lines(spark, files)
    if settings.header:
        lines = lines.where(F.ltrim(F.col("raw"), F.lit(_BOM)) != first)
        positions = {name: position for position, name in enumerate(map(str.strip, cells))}
    else:
        positions = {str(position): position for position in range(len(cells))}
    chosen = choose_columns(positions, settings, files[0])
    schema = ", ".join([f"c{i} string" for i in range(len(cells))] + ["unparsed string"])
    options = {
        "sep": settings.separator,
        "escape": '"',
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": "unparsed",
    }
    parsed = lines.withColumn("fields", F.from_csv("raw", schema, options))
    parts = {name: F.col(f"fields.c{positions[column]}") for name, column in chosen.items()}
    # a record over several lines is not read: each of its lines has an odd number of quotes
    whole = F.length(F.regexp_replace("raw", '[^"]', "")) % 2 == 0
    return _typed(parsed, parts, fields_ok=F.col("fields.unparsed").isNull() & whole)


def read_parquet(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> DataFrame:
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
        F.to_json(F.struct(*[F.col(f"`{name}`") for name in frame.columns])).alias("raw"),
        F.lit(True).alias("utf8_ok"),
        *[
            _plain(frame.schema[column], name).alias(f"part_{name}")
            for name, column in chosen.items()
        ],
    )
    return _typed(sourced, {name: F.col(f"part_{name}") for name in chosen}, fields_ok=F.lit(True))


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
    column = F.col(f"`{field.name}`")
    if isinstance(field.dataType, _TIMES):
        return F.unix_timestamp(column.cast("timestamp")).cast("string")
    if name != "rating" and isinstance(field.dataType, (T.DoubleType, T.FloatType)):
        # whole numbers become floats where a column had gaps
        whole = column.try_cast("bigint")
        return F.when(column == whole, whole.cast("string")).otherwise(column.cast("string"))
    return column.cast("string")


def _read_lines(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    lines = spark.read.text([literal(file) for file in files]).select(
        F.col("_metadata.file_path").alias("source"),
        F.rtrim(F.make_valid_utf8("value"), F.lit("\r")).alias("raw"),
        F.is_valid_utf8("value").alias("utf8_ok"),
    )
    return lines.where(F.trim("raw") != "")


def _first_lines(spark: SparkSession, files: Sequence[str]) -> dict[str, str]:
    filesystem = Filesystem(spark)
    lines = {file: filesystem.first_line(file) for file in files}
    return {file: line for file, line in lines.items() if line is not None}


def _typed(frame: DataFrame, parts: dict[str, Column], fields_ok: Column) -> DataFrame:
    timestamp = parts.get("timestamp", F.lit(None).cast("string"))
    seconds = _seconds(timestamp)
    return frame.select(
        "source",
        "raw",
        "utf8_ok",
        fields_ok.alias("fields_ok"),
        _identifier(parts["user"]).alias("user_id"),
        _identifier(parts["item"]).alias("item_id"),
        _number(parts["rating"]).alias("rating"),
        seconds.alias("timestamp"),
        (timestamp.isNull() | seconds.isNotNull() | (F.trim(timestamp) == "")).alias(
            "timestamp_ok"
        ),
    )


def _number(text: Column) -> Column:
    """Return a double, null for what is no number (Java would also read ``5d`` and ``0x1p1``)."""
    return F.when(F.trim(text).rlike(_NUMBER), F.trim(text).try_cast("double"))


def _seconds(text: Column) -> Column:
    """Return seconds since 1970 from a number or an ISO date or time, else null."""
    trimmed = F.trim(text)
    return F.coalesce(
        trimmed.try_cast("bigint"),
        _number(text).try_cast("bigint"),
        F.unix_timestamp(F.try_to_timestamp(trimmed)),
    )


def _identifier(text: Column) -> Column:
    # not trimmed: the ids of the output are those of the input
    return F.when(text != "", text)


FORMATS: dict[str, Format] = {
    "movielens-100k": Format("196\\t242\\t3\\t881250949", delimited_reader("\t", (3, 4))),
    "movielens-dat": Format("1::1193::5::978300760", delimited_reader("::", (3, 4))),
    "csv": Format("user,item,rating,timestamp", read_csv),
    "parquet": Format("columns user, item, rating, timestamp", read_parquet),
}
