"""Tables keep their contracts: names, types, documented columns, a version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.errors import ContractError
from spark_rank.tables.contract import Column, Contract, arrow_schema
from spark_rank.tables.contracts import BLOCKS, TABLES

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


def test_no_dictionary_is_tried_of_varied_numbers(spark: SparkSession, tmp_path: Path) -> None:
    columns = [
        Column(f"{words}{number}", kind, words, varied=words == "varied")
        for words in ("varied", "plain")
        for number, kind in enumerate(("array<float>", "double"))
    ]
    contract = Contract("sample", 1, "a sample", tuple(columns))
    alike: dict[str, Any] = {"varied0": [0.5] * 9, "varied1": 1.0, "plain0": [0.5] * 9,
                             "plain1": 1.0}  # fmt: skip
    rows = pa.Table.from_pylist([alike] * 9, schema=arrow_schema(contract.columns))
    folder = tmp_path / "sample"
    contract.writer(spark.createDataFrame(rows).coalesce(1)).parquet(str(folder))
    (file,) = folder.glob("*.parquet")
    group = pq.ParquetFile(file).metadata.row_group(0)
    with_dictionary = {
        group.column(place).path_in_schema: group.column(place).has_dictionary_page
        for place in range(len(contract.columns))
    }
    assert with_dictionary == {
        "varied0.list.element": False, "varied1": False,
        "plain0.list.element": True, "plain1": True,
    }  # fmt: skip
    assert pq.read_table(file).drop(["schema_version"]).to_pylist() == [alike] * 9


def test_a_users_row_stands_in_a_small_row_group(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    users, rated = 4000, 300
    ends = pa.array(np.arange(0, (users + 1) * rated, rated, dtype=np.int32))
    columns = {
        "user": pa.array(range(users), pa.int32()),
        "user_id": [f"u{user}" for user in range(users)],
        "items": pa.ListArray.from_arrays(ends, rng.integers(0, 10**6, users * rated, np.int32)),
        "ratings": pa.ListArray.from_arrays(ends, rng.random(users * rated, np.float32)),
        "timestamps": pa.nulls(users, pa.list_(pa.int64())),
        "n_train": pa.array([rated] * users, pa.int32()),
        "bucket": pa.array([0] * users, pa.int32()),
    }
    frame = spark.createDataFrame(pa.table(columns)).coalesce(1)
    BLOCKS.writer(frame).parquet(str(tmp_path / "blocks"))
    (file,) = (tmp_path / "blocks").glob("*.parquet")
    footer = pq.read_metadata(file)
    sizes = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
    assert sum(sizes) == users
    assert max(sizes) < users / 4
