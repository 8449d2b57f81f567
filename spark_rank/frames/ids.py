"""Ids of any type as text, and back."""

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

# text tells their values apart, and a cast brings them back
_KINDS = (StringType, NumericType, BooleanType, DateType, TimestampNTZType)


def column_of(frame: DataFrame, name: str) -> Column:
    """Return a column by its name, dots and all, or raise `InputDataError` if there is none."""
    if name not in frame.columns:
        raise InputDataError(f"there is no column {name!r}, only {', '.join(frame.columns)}")
    return F.col(f"`{name.replace('`', '``')}`")


def id_text(frame: DataFrame, name: str) -> Column:
    """Return a column of ids as text."""
    id_type(frame, name)
    return column_of(frame, name).cast("string")


def id_type(frame: DataFrame, name: str) -> DataType:
    """Return the type of a column of ids, or raise `InputDataError` if text cannot stand for it."""
    column_of(frame, name)
    kind: DataType = frame.schema[name].dataType
    if not isinstance(kind, _KINDS):
        raise InputDataError(
            f"column {name!r} is {kind.simpleString()}: ids are text, numbers, booleans or dates: "
            "cast it to one of these"
        )
    return kind
