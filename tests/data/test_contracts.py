"""Tables keep their contracts: names, types, documented columns, a version."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.data.contracts import Column, Contract, arrow_schema
from spark_rank.data.tables import TABLES
from spark_rank.errors import ContractError

CONTRACT = Contract(
    "sample", 3, "a sample", (Column("name", "string", "a name"), Column("n", "int", "a number"))
)


def test_apply_orders_documents_and_stamps(spark: SparkSession) -> None:
    frame = CONTRACT.apply(spark.createDataFrame([(1, "a")], "n int, name string"))
    assert frame.columns == ["name", "n", "schema_version"]
    assert frame.schema["n"].metadata == {"comment": "a number"}
    assert frame.head() == ("a", 1, 3)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("name string", "column 'n' .int. is missing"),
        ("name string, n bigint", "column 'n' is bigint, the contract .version 3. says int"),
        ("name string, n int, m int", "column 'm' is not in the contract"),
    ],
)
def test_drift_is_refused(spark: SparkSession, columns: str, words: str) -> None:
    frame = spark.createDataFrame([], columns)
    with pytest.raises(ContractError, match=f"table sample: {words}") as caught:
        CONTRACT.apply(frame)
    assert caught.value.exit_code == 3
    with pytest.raises(ContractError, match=words):
        CONTRACT.check(frame.withColumn("schema_version", F.lit(3)))


@pytest.mark.parametrize("table", TABLES)
def test_every_column_of_every_table_is_documented(table: str) -> None:
    contract = TABLES[table]
    assert contract.doc
    assert all(column.doc for column in contract.columns)
    names = [column.name for column in contract.columns]
    assert len(names) == len(set(names))
    arrow = arrow_schema(contract.columns)
    assert arrow.names == names


def test_arrow_and_spark_types_agree(spark: SparkSession) -> None:
    for contract in TABLES.values():
        arrow = arrow_schema(contract.columns)
        table = pa.table({f.name: pa.array([], f.type) for f in arrow}, schema=arrow)
        applied = contract.apply(spark.createDataFrame(table))
        ours, promised = (
            [(f.name, f.dataType, f.metadata) for f in schema]
            for schema in (applied.schema, contract.schema())
        )
        assert ours == promised
