"""Parquet tables with a column mapping, every file by its own columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_rank.config import InputConfig
from spark_rank.data.filesystem import Filesystem, java_reason, literal
from spark_rank.data.formats.base import Reading
from spark_rank.data.formats.tabular import choose_columns
from spark_rank.data.formats.values import typed
from spark_rank.errors import ConfigError, InputDataError

_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)


def read_parquet(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read a Parquet table; ids of any type become text, ratings doubles.

    Files whose columns differ are read each by its own: Spark would take those of one for all.
    """
    filesystem = Filesystem(spark)
    groups: dict[str, list[str]] = {}
    for info in (info for file in files for info in filesystem.below(file)):
        groups.setdefault(filesystem.parquet_columns(info.path), []).append(info.path)
    rows = [_rows(spark, group, settings) for group in groups.values()]
    return Reading(reduce(DataFrame.unionByName, rows), None)


def _rows(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> DataFrame:
    try:
        frame = spark.read.parquet(*map(literal, files))
    except (PySparkException, Py4JJavaError) as error:
        raise InputDataError(
            f"{files[0]}: cannot be read as Parquet: {java_reason(error)}"
        ) from None
    chosen = choose_columns({name: i for i, name in enumerate(frame.columns)}, settings, files[0])
    _check_types(frame, chosen, files[0])
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
    return typed(sourced, parts, fields_ok=F.lit(True))


def _check_types(frame: DataFrame, chosen: dict[str, str], file: str) -> None:
    for name, column in chosen.items():
        kind = frame.schema[column].dataType
        if not isinstance(kind, (T.NumericType, T.StringType, T.BooleanType, *_TIMES)):
            raise ConfigError(
                f"input.columns.{name}: {file}: column {column!r} is {kind.simpleString()}: "
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
