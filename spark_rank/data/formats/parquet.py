"""Reads Parquet tables with a column mapping, which may differ by file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_rank.config import InputConfig
from spark_rank.data.formats.base import Reading
from spark_rank.data.formats.columns import choose_columns
from spark_rank.data.formats.notation import day_first, numbers, time_unit
from spark_rank.data.formats.samples import spread
from spark_rank.data.formats.table_settings import time_words
from spark_rank.data.formats.values import read_times, typed
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.session.files import FileInfo
from spark_rank.session.filesystem import Filesystem, java_reason, literal
from spark_rank.session.parquet_footer import column_statistics, read_footer

_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)
_PLAIN = (T.NumericType, T.StringType, T.BooleanType, T.BinaryType, *_TIMES)
# needed to read nanoseconds (as whole numbers), and names that differ only in case
PARQUET_SETTINGS = {
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.caseSensitive": "true",
}
# types that Spark cannot read, and what to write instead
_UNREAD = {"FLOAT16": ("float16", "float32"), "TIME": ("a time of day", "a timestamp"),
           "INTERVAL": ("an interval", "a number")}  # fmt: skip


def read_parquet(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read a Parquet table; ids of any type become strings, ratings doubles.

    Files with different columns are read separately: Spark would use the columns of one for all.
    """
    filesystem = Filesystem(spark)
    infos = [info for file in files for info in filesystem.below(file)]
    if settings.time_unit is None:
        settings = complete_parquet(filesystem, infos, settings)
    groups: dict[str, list[FileInfo]] = {}
    for info in infos:
        groups.setdefault(filesystem.parquet_columns(info.path), []).append(info)
    rows = [_rows(spark, group, _footer(filesystem, group[0]), settings)
            for group in groups.values()]  # fmt: skip
    return Reading(reduce(DataFrame.unionByName, rows), None)


def complete_parquet(
    files: Filesystem, infos: Sequence[FileInfo], settings: InputConfig
) -> InputConfig:
    """Return the settings with unit and order of times, from the footers of a few files."""
    _check_columns(_footer(files, infos[0]), infos[0].path)
    where = infos[0].path if len(infos) == 1 else f"{infos[0].path} and others"
    texts = _times(files, infos, settings)
    order = day_first(texts, where) if settings.day_first is None else settings.day_first
    unit = settings.time_unit or time_unit(numbers(texts), where)
    return replace(settings, time_unit=unit, day_first=order)


def parquet_words(files: Filesystem, infos: Sequence[FileInfo], settings: InputConfig) -> str:
    """Return how the first file is read, in words."""
    names = _names(_footer(files, infos[0]))
    places = choose_columns(names, settings, infos[0].path)
    words = [f"columns {', '.join(names[place] for place in places.values())}"]
    return ", ".join([*words, *time_words(_times(files, infos, settings), settings)])


def _times(files: Filesystem, infos: Sequence[FileInfo], settings: InputConfig) -> list[str]:
    """Return the least and greatest times of row groups, if they are numbers or text."""
    chosen = set(spread([info.path for info in infos]))
    times = []
    for info in (info for info in infos if info.path in chosen):
        footer = _footer(files, info)
        names = _names(footer)
        place = choose_columns(names, settings, info.path).get("timestamp")
        if place is not None:
            times += list(_ends(footer, names[place]))
    return times


def _ends(footer: pq.FileMetaData, column: str) -> Iterable[str]:
    for group in range(footer.num_row_groups):
        statistics = column_statistics(footer.row_group(group), column)
        if statistics is not None and statistics.has_min_max:
            for end in (statistics.min, statistics.max):
                if isinstance(end, (str, int, float)):
                    yield str(end)


def _footer(files: Filesystem, info: FileInfo) -> pq.FileMetaData:
    try:
        return read_footer(files, info)
    except (pa.ArrowException, OSError) as error:
        reason = (str(error).strip().splitlines() or ["damaged"])[0]
        raise InputDataError(f"{info.path}: cannot be read as Parquet: {reason}") from None


def _names(footer: pq.FileMetaData) -> list[str]:
    schema = footer.schema
    paths = [schema.column(place).path for place in range(len(schema))]
    return list(dict.fromkeys(path.partition(".")[0] for path in paths)) if _once(paths) else paths


def _once(paths: Sequence[str]) -> bool:
    return len(set(paths)) == len(paths)


def _rows(
    spark: SparkSession, group: Sequence[FileInfo], footer: pq.FileMetaData, settings: InputConfig
) -> DataFrame:
    assert settings.time_unit is not None
    file = group[0].path
    _check_columns(footer, file)
    try:
        frame = spark.read.parquet(*(literal(info.path) for info in group))
    except (PySparkException, Py4JJavaError) as error:
        raise InputDataError(f"{file}: cannot be read as Parquet: {java_reason(error)}") from None
    places = choose_columns(frame.columns, settings, file)
    chosen = {name: frame.schema[place] for name, place in places.items()}
    _check_types(chosen, file)
    nanos = _nanosecond_columns(footer)
    sourced = frame.select(
        F.col("_metadata.file_path").alias("source"),
        F.lit(0).cast("bigint").alias("block"),
        F.col("_metadata.row_index").alias("row"),
        F.to_json(F.struct(*[_column(name) for name in frame.columns])).alias("raw"),
        reduce(Column.__and__, map(_is_text, chosen.values())).alias("text_ok"),
        *[
            _plain(field, name, field.name in nanos).alias(f"part_{name}")
            for name, field in chosen.items()
        ],
    )
    parts = {name: F.col(f"part_{name}") for name in chosen}
    if "timestamp" not in chosen:
        return typed(sourced, parts, F.lit(True))
    typed_time = _is_time(chosen["timestamp"], nanos)
    unit = "s" if typed_time else settings.time_unit
    seconds = read_times(parts["timestamp"], unit, settings.day_first)
    return typed(sourced, parts, F.lit(True), seconds)


def _check_columns(footer: pq.FileMetaData, file: str) -> None:
    """Raise `InputDataError` for columns that Spark cannot read."""
    names = _names(footer)
    for name in names:
        if names.count(name) > 1:
            raise InputDataError(
                f"{file}: has two columns named {name!r}, which Spark cannot read: rename one"
            )
    for place in range(len(footer.schema)):
        column = footer.schema.column(place)
        logical_type = column.logical_type.type
        if logical_type in _UNREAD:
            type_name, better = _UNREAD[logical_type]
            raise InputDataError(
                f"{file}: column {column.path!r} is {type_name}, which Spark cannot read: write it "
                f"as {better}, or leave it out"
            )


def _nanosecond_columns(footer: pq.FileMetaData) -> set[str]:
    columns = [footer.schema.column(place) for place in range(len(footer.schema))]
    return {
        column.path
        for column in columns
        if column.logical_type.type == "TIMESTAMP" and "nanoseconds" in str(column.logical_type)
    }


def _is_time(field: T.StructField, nanos: set[str]) -> bool:
    return isinstance(field.dataType, _TIMES) or field.name in nanos


def _check_types(chosen: dict[str, T.StructField], file: str) -> None:
    for name, field in chosen.items():
        if not isinstance(field.dataType, _PLAIN):
            raise ConfigError(
                f"input.columns.{name}: {file}: column {field.name!r} is "
                f"{field.dataType.simpleString()}: it must be a plain number or text"
            )


def _is_text(field: T.StructField) -> Column:
    """Return whether a value can be text: bytes must be UTF-8."""
    if not isinstance(field.dataType, T.BinaryType):
        return F.lit(True)
    column = _column(field.name)
    return column.isNull() | F.is_valid_utf8(column.cast("string"))


def _plain(field: T.StructField, name: str, nanoseconds: bool) -> Column:
    """Return a Parquet column as text: an id 5.0 becomes 5, a time becomes seconds."""
    column = _column(field.name)
    if nanoseconds:
        whole = column - F.pmod(column, F.lit(10**9))
        return F.call_function("div", whole, F.lit(10**9)).cast("string")
    if isinstance(field.dataType, _TIMES):
        return F.unix_timestamp(column.cast("timestamp")).cast("string")
    if isinstance(field.dataType, T.BinaryType):
        return F.make_valid_utf8(column.cast("string"))
    fractions = isinstance(field.dataType, (T.DoubleType, T.FloatType)) or (
        isinstance(field.dataType, T.DecimalType) and field.dataType.scale > 0
    )
    if name != "rating" and fractions:
        # a column of whole numbers with gaps may have been written as floats
        whole = column.try_cast("bigint")
        return F.when(column == whole, whole.cast("string")).otherwise(column.cast("string"))
    return column.cast("string")


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")
