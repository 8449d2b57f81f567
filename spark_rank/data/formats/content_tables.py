"""Reads tables that describe items or users: CSV, Parquet, ``u.item``, ``movies.dat``, …."""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from spark_rank.data.formats.file_kinds import PARQUET
from spark_rank.data.formats.lines import BOM, not_blank, read_lines
from spark_rank.session.filesystem import literal

# those of MovieLens come without a header
_WITHOUT_HEADER = ("::", "|")
_WITH_HEADER = (",", ";", "\t")
# separates several values in a cell, such as genres
_BETWEEN_VALUES = r"\|"


def read_content(spark: SparkSession, files: list[str]) -> DataFrame:
    """Return ``id, name, value``: a row per value of a column, null and empty ones left out.

    The first column is the id. A cell with several values has ``|`` between them, or is an array.
    """
    paths = [literal(file) for file in files]
    lines = not_blank(read_lines(spark, files, None)).select("raw").head(1)
    first = str(lines[0]["raw"]).lstrip(BOM) if lines else ""
    if first.startswith(PARQUET.decode()):
        return _long(spark.read.parquet(*paths))
    delimiter = _delimiter(first)
    if delimiter in _WITHOUT_HEADER:
        return _long(_split(spark, files, delimiter, first.count(delimiter) + 1))
    return _long(spark.read.csv(paths, header=True, sep=delimiter, escape='"'))


def _delimiter(line: str) -> str:
    """Return the delimiter of a table by its first line."""
    if "::" in line:
        return "::"
    return max((*_WITH_HEADER, "|"), key=line.count)


def _split(spark: SparkSession, files: list[str], delimiter: str, width: int) -> DataFrame:
    cells = F.split("raw", re.escape(delimiter))
    return not_blank(read_lines(spark, files, None)).select(
        *[F.get(cells, F.lit(place)).alias(f"column {place + 1}") for place in range(width)]
    )


def _long(table: DataFrame) -> DataFrame:
    names = table.columns
    entries = [
        F.struct(F.lit(name).alias("name"), _values(table, name).alias("values"))
        for name in names[1:]
    ]
    if not entries:
        return table.select(*[F.lit(None).cast("string").alias(name) for name in
                              ("id", "name", "value")]).limit(0)  # fmt: skip
    rows = table.select(
        F.col(_quoted(names[0])).cast("string").alias("id"), F.inline(F.array(*entries))
    ).select("id", "name", F.explode("values").alias("text"))
    rows = rows.select("id", "name", F.trim("text").alias("value"))
    return rows.where(F.col("id").isNotNull() & (F.col("value") != "")).distinct()


def _values(table: DataFrame, name: str) -> Column:
    """Return the values of a cell as texts."""
    column = F.col(_quoted(name))
    if isinstance(table.schema[name].dataType, ArrayType):
        return column.cast("array<string>")
    return F.split(column.cast("string"), _BETWEEN_VALUES)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
