"""Rating files in their native formats: each becomes the same columns, unparsable parts as null.

A parsed row has ``source, raw, fields_ok, user_id, item_id, rating, has_rating, timestamp,
has_timestamp``; `spark_rank.data.quality` says which rows are good and why the others are not.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_rank.config import InputConfig
from spark_rank.config.values import suggestion
from spark_rank.errors import ConfigError, InputDataError

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
    """Read delimited text with quotes; columns by header name or by position."""
    lines = _read_lines(spark, files)
    first = _first_line(spark, files[0]) if files else ""
    cells = next(csv.reader(io.StringIO(first.lstrip("\ufeff")), delimiter=settings.delimiter), [])
    if settings.header:
        lines = lines.where(F.ltrim(F.col("raw"), F.lit("\ufeff")) != first.lstrip("\ufeff"))
        positions = {name: position for position, name in enumerate(map(str.strip, cells))}
    else:
        positions = {str(position): position for position in range(len(cells))}
    chosen = choose_columns(positions, settings)
    schema = ", ".join([f"c{i} string" for i in range(len(cells))] + ["unparsed string"])
    options = {
        "sep": settings.delimiter,
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": "unparsed",
    }
    parsed = lines.withColumn("fields", F.from_csv("raw", schema, options))
    parts = {name: F.col(f"fields.c{positions[column]}") for name, column in chosen.items()}
    return _typed(parsed, parts, fields_ok=F.col("fields.unparsed").isNull())


def read_parquet(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> DataFrame:
    """Read a Parquet table; ids of any type become text, ratings doubles."""
    try:
        frame = spark.read.parquet(*files)
    except (PySparkException, Py4JJavaError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputDataError(
            f"{files[0]}: cannot be read as Parquet: is input.format right? ({reason})"
        ) from None
    chosen = choose_columns({name: i for i, name in enumerate(frame.columns)}, settings)
    _check_parquet_types(frame, chosen)
    sourced = frame.select(
        F.col("_metadata.file_path").alias("source"),
        F.to_json(F.struct(*[F.col(f"`{name}`") for name in frame.columns])).alias("raw"),
        *[F.col(f"`{column}`").alias(f"part_{name}") for name, column in chosen.items()],
    )
    return _typed(sourced, {name: F.col(f"part_{name}") for name in chosen}, fields_ok=F.lit(True))


def choose_columns(positions: dict[str, int], settings: InputConfig) -> dict[str, str]:
    """Return which input column is user, item, rating and (where there is one) timestamp."""
    chosen = {}
    for name, usual in USUAL_NAMES.items():
        wanted = settings.columns.get(name)
        if wanted is not None:
            if wanted not in positions:
                hint = suggestion(wanted, positions)
                raise ConfigError(
                    f"input.columns.{name}: the input has no column {wanted!r} ({hint})"
                )
            chosen[name] = wanted
            continue
        by_position = str(list(USUAL_NAMES).index(name)) if not settings.header else None
        found = [c for c in positions if c.lower() in usual or c == by_position]
        if found:
            chosen[name] = found[0]
        elif name != "timestamp":
            raise ConfigError(
                f"input.columns.{name}: cannot tell which column holds the {name}: name one of "
                f"{', '.join(positions) or '(the input has no columns)'}"
            )
    return chosen


def _check_parquet_types(frame: DataFrame, chosen: dict[str, str]) -> None:
    simple = (T.NumericType, T.StringType, T.TimestampType, T.DateType, T.BooleanType)
    for name, column in chosen.items():
        kind = frame.schema[column].dataType
        if not isinstance(kind, simple):
            raise ConfigError(
                f"input.columns.{name}: column {column!r} is {kind.simpleString()}: "
                "a plain number or text is needed"
            )


def _read_lines(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    lines = spark.read.text(list(files)).select(
        F.col("_metadata.file_path").alias("source"), F.rtrim("value", F.lit("\r")).alias("raw")
    )
    return lines.where(F.trim("raw") != "")


def _first_line(spark: SparkSession, file: str) -> str:
    rows = spark.read.text(file).where(F.trim("value") != "").head(1)
    if not rows:
        raise InputDataError(f"{file}: is empty: the header that names the columns is missing")
    return str(rows[0][0]).rstrip("\r")


def _typed(frame: DataFrame, parts: dict[str, Column], fields_ok: Column) -> DataFrame:
    timestamp = parts.get("timestamp", F.lit(None).cast("string"))
    seconds = _seconds(frame, timestamp)
    return frame.select(
        "source",
        "raw",
        fields_ok.alias("fields_ok"),
        _identifier(parts["user"]).alias("user_id"),
        _identifier(parts["item"]).alias("item_id"),
        _text(parts["rating"]).try_cast("double").alias("rating"),
        seconds.alias("timestamp"),
        (timestamp.isNull() | seconds.isNotNull() | (_text(timestamp) == "")).alias("timestamp_ok"),
    )


def _seconds(frame: DataFrame, timestamp: Column) -> Column:
    kind = frame.select(timestamp.alias("t")).schema["t"].dataType
    if isinstance(kind, (T.TimestampType, T.DateType)):
        return F.unix_timestamp(timestamp.cast("timestamp"))
    return _text(timestamp).try_cast("bigint")


def _identifier(column: Column) -> Column:
    text = _text(column)
    return F.when(text != "", text)


def _text(column: Column) -> Column:
    return F.trim(column.cast("string"))


FORMATS: dict[str, Format] = {
    "movielens-100k": Format("196\\t242\\t3\\t881250949", delimited_reader("\t", (3, 4))),
    "movielens-dat": Format("1::1193::5::978300760", delimited_reader("::", (3, 4))),
    "csv": Format("user,item,rating,timestamp", read_csv),
    "parquet": Format("columns user, item, rating, timestamp", read_parquet),
}
