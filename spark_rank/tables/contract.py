"""The schema of every table that a run writes: names, types, meanings, version.

They are checked on write and on read; a table that drifted from its contract is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_rank.errors import ContractError

if TYPE_CHECKING:  # who reads tables without Spark imports this module, too
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
    from pyspark.sql.types import DataType, StructType

VERSION_COLUMN = "schema_version"


@dataclass(frozen=True)
class Column:
    """A column: name, Spark type, meaning.

    Of `varied` numbers hardly any two are equal: no Parquet dictionary of them is tried, which
    would cost a third of the time of writing them.
    """

    name: str
    type: str
    doc: str
    varied: bool = False

    @property
    def parquet_path(self) -> str:
        """Return the name of the values in a Parquet file that Spark writes."""
        return f"{self.name}.list.element" if self.type.startswith("array<") else self.name


@dataclass(frozen=True)
class Contract:
    """A table: name, version, columns in order; `schema_version` is always the last column."""

    table: str
    version: int
    doc: str
    columns: tuple[Column, ...]

    def schema(self) -> StructType:
        """Return the Spark schema, with each column's meaning as its comment."""
        from pyspark.sql.types import StructField, StructType

        fields = [
            StructField(c.name, _spark_type(c.type), True, {"comment": c.doc}) for c in self.columns
        ]
        version = StructField(VERSION_COLUMN, _spark_type("int"), True, {"comment": "version"})
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
        """Return what writes `frame` under the contract, in the place of what is there."""
        writer = self.apply(frame).write.mode("overwrite")
        for column in self.columns:
            if column.varied:
                writer.option(f"parquet.enable.dictionary#{column.parquet_path}", False)
        return writer

    def nothing(self, spark: SparkSession) -> DataFrame:
        """Return the contract's columns without a row."""
        return spark.createDataFrame(arrow_schema(self.columns).empty_table())

    def check(self, frame: DataFrame) -> DataFrame:
        """Return `frame`, or raise `ContractError` naming the first column that differs."""
        actual = {f.name: f.dataType.simpleString() for f in frame.schema}
        expected = {f.name: f.dataType.simpleString() for f in self.schema()}
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
        return frame


@cache
def _spark_type(name: str) -> DataType:
    """Return a type by its name: Spark is asked for each once, a call takes milliseconds."""
    from pyspark.sql.types import DataType

    return DataType.fromDDL(name)


def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """Return the Arrow schema of plain columns, for batches that a worker builds."""
    return pa.schema([(c.name, _ARROW_TYPES[c.type]) for c in columns])


def ddl(columns: tuple[Column, ...]) -> str:
    """Return plain columns as Spark writes a schema, for the output of `mapInArrow`."""
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
