"""Columns of ids of any type as strings."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    TimestampNTZType,
)

from spark_rank.errors import InputDataError

# types whose values differ as strings, and that a cast restores
_ID_TYPES = (StringType, NumericType, BooleanType, DateType, TimestampNTZType)


def column_of(frame: DataFrame, name: str) -> Column:
    """Return a column by its name, which may have dots; raise `InputDataError` if there is none."""
    if name not in frame.columns:
        raise InputDataError(f"there is no column {name!r}, only {', '.join(frame.columns)}")
    return F.col(f"`{name.replace('`', '``')}`")


def id_text(frame: DataFrame, name: str) -> Column:
    """Return a column of ids as strings."""
    id_type(frame, name)
    return column_of(frame, name).cast("string")


def id_type(frame: DataFrame, name: str) -> DataType:
    """Return the type of a column of ids; raise `InputDataError` if it cannot be used for ids."""
    column_of(frame, name)
    spark_type: DataType = frame.schema[name].dataType
    if not isinstance(spark_type, _ID_TYPES):
        raise InputDataError(
            f"column {name!r} is {spark_type.simpleString()}: cast it to a string, number, "
            "boolean or date to use it as ids"
        )
    return spark_type
