"""Contracts: the schema of every table that a run writes, with names, types, meanings, version.

Contracts are checked on write and on read; a table that differs from its contract is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_rank.errors import ContractError

if TYPE_CHECKING:  # readers without Spark import this module too
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
    from pyspark.sql.types import DataType, StructType

VERSION_COLUMN = "schema_version"
# bytes of a row group in tables where single users are looked up: some hundred users' ratings
ONE_USER = 2**20


@dataclass(frozen=True)
class Column:
    """A column: name, Spark type, meaning.

    `varied` says that hardly any two values are equal. Then Parquet tries no dictionary, which
    would take a third of the time of writing them.
    """

    name: str
    type: str
    doc: str
    varied: bool = False

    @property
    def parquet_path(self) -> str:
        """Return the path of the column's values in Spark's Parquet files."""
        return f"{self.name}.list.element" if self.type.startswith("array<") else self.name


def measured(name: str, doc: str) -> Column:
    """Return a column of real numbers, hardly any two of them equal."""
    return Column(name, "double", doc, varied=True)


@dataclass(frozen=True)
class Contract:
    """A table: name, version, columns in order; `schema_version` is always the last column.

    `group_bytes` is the size of the row groups, None for Parquet's default. Tables in which single
    users are looked up have small groups, because reading one row reads its whole group.
    """

    table: str
    version: int
    doc: str
    columns: tuple[Column, ...]
    group_bytes: int | None = None

    def schema(self) -> StructType:
        """Return the Spark schema, with each column's meaning as its comment."""
        from pyspark.sql.types import StructField, StructType

        fields = [
            StructField(c.name, _type_named(c.type), True, {"comment": c.doc}) for c in self.columns
        ]
        version = StructField(VERSION_COLUMN, _type_named("int"), True, {"comment": "version"})
        return StructType([*fields, version])

    def apply(self, frame: DataFrame) -> DataFrame:
        """Return `frame` with exactly the contract's columns, stamped and documented."""
        from pyspark.sql import functions as F

        stamped = frame.withColumn(VERSION_COLUMN, F.lit(self.version))
        self.check(stamped)
        documented = [
            F.col(field.name).alias(field.name, metadata=field.metadata) for field in self.schema()
        ]
        return stamped.select(documented)

    def writer(self, frame: DataFrame) -> DataFrameWriter:
        """Return a writer of `frame` under the contract, which replaces existing files."""
        writer = self.apply(frame).write.mode("overwrite")
        if self.group_bytes is not None:
            writer.option("parquet.block.size", self.group_bytes)
        for column in self.columns:
            if column.varied:
                writer.option(f"parquet.enable.dictionary#{column.parquet_path}", False)
        return writer

    def nothing(self, spark: SparkSession) -> DataFrame:
        """Return a DataFrame with the contract's columns and no rows."""
        return spark.createDataFrame(arrow_schema(self.columns).empty_table())

    def check(self, frame: DataFrame) -> DataFrame:
        """Return `frame`, or raise `ContractError` naming the first column that differs."""
        self._check_types({f.name: f.dataType.simpleString() for f in frame.schema})
        return frame

    def check_arrow(self, schema: pa.Schema, partitions: Collection[str] = ()) -> None:
        """Check the columns of a file as `check` does; `partitions` are in folder names instead."""
        folders = {column.name: column.type for column in self.columns if column.name in partitions}
        self._check_types(folders | {field.name: _spark_type(field.type) for field in schema})

    def other_version(self, footer: pq.FileMetaData) -> int | None:
        """Return another version of the table that a Parquet file contains, or None.

        A file without a version has version 0.
        """
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        columns = [group.column(place) for group in groups for place in range(group.num_columns)]
        statistics = [each.statistics for each in columns if each.path_in_schema == VERSION_COLUMN]
        if len(statistics) < len(groups):
            return 0
        versions = {end for each in statistics if each is not None and each.has_min_max
                 for end in (each.min, each.max)}  # fmt: skip
        return max(versions - {self.version}, default=None)

    def _check_types(self, actual: Mapping[str, str]) -> None:
        expected = {column.name: column.type for column in self.columns} | {VERSION_COLUMN: "int"}
        for name, kind in expected.items():
            if name not in actual:
                raise ContractError(f"table {self.table}: column {name!r} ({kind}) is missing")
            if actual[name] != kind:
                raise ContractError(
                    f"table {self.table}: column {name!r} is {actual[name]}, the contract "
                    f"(version {self.version}) says {kind}"
                )
        surplus = [name for name in actual if name not in expected]
        if surplus:
            raise ContractError(f"table {self.table}: column {surplus[0]!r} is not in the contract")


@cache
def _type_named(name: str) -> DataType:
    """Return a type by its name, cached because the JVM parses it."""
    from pyspark.sql.types import DataType

    return DataType.fromDDL(name)


def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """Return the Arrow schema of columns, for batches that a worker builds."""
    return pa.schema([(c.name, _ARROW_TYPES[c.type]) for c in columns])


def ddl(columns: tuple[Column, ...]) -> str:
    """Return columns as a schema in Spark's DDL, for the output of `mapInArrow`."""
    return ", ".join(f"{column.name} {column.type}" for column in columns)


_ARROW_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "array<int>": pa.list_(pa.int32()),
    "array<float>": pa.list_(pa.float32()),
    "array<bigint>": pa.list_(pa.int64()),
    "array<string>": pa.list_(pa.string()),
    "array<double>": pa.list_(pa.float64()),
    "array<boolean>": pa.list_(pa.bool_()),
    "binary": pa.binary(),
}


def _spark_type(kind: pa.DataType) -> str:
    """Return a file's type by its name in contracts, or by Arrow's name if they have none."""
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    return next((name for name, own in _ARROW_TYPES.items() if own == kind), str(kind))
