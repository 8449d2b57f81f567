"""Given vectors are matched, scaled, or refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyspark.sql import DataFrame, SparkSession

from spark_rank.errors import InputDataError
from spark_rank.features import given
from spark_rank.features.given import (
    VectorFacts,
    chunks,
    match_vectors,
    read_vectors,
    scaled,
    sorted_parts,
    standard_scale,
)

Vectors = list[tuple[Any, Any]]
RNG = np.random.default_rng(0)
FEATURES = (RNG.normal(size=(9, 3)) * [1, 100, 0] + [0, 1e4, 7]).astype(np.float32)
VECTORS: Vectors = [(f"i{n}", FEATURES[n].tolist()) for n in range(9)]


def items_of(spark: SparkSession, count: int = 10) -> DataFrame:
    rows = [(n, f"i{n}") for n in range(count)]
    return spark.createDataFrame(rows, "item int, item_id string")


def matched(spark: SparkSession, vectors: Vectors) -> tuple[DataFrame, VectorFacts]:
    frame = spark.createDataFrame(vectors, "item_id string, features array<float>")
    return match_vectors(items_of(spark), frame, "key")


def test_items_are_matched_by_their_ids(spark: SparkSession) -> None:
    found, facts = matched(spark, [*VECTORS, ("elsewhere", [1.0, 2.0, 3.0])])
    assert (facts, facts.missing) == (VectorFacts(3, 9, 10), 1)
    rows = {row["item"]: row["features"] for row in found.collect()}
    assert rows.pop(9) is None
    assert rows == {n: FEATURES[n].tolist() for n in range(9)}


@pytest.mark.parametrize("chunk_bytes", [24, 1 << 20])
def test_features_get_mean_0_and_deviation_1(
    spark: SparkSession, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given, "_CHUNK_BYTES", chunk_bytes)
    found, facts = matched(spark, VECTORS)
    parts = sorted_parts(found, facts)
    scale = standard_scale(parts, facts)
    wide = FEATURES.astype(np.float64)
    assert_allclose(scale.mean, wide.mean(axis=0), rtol=1e-12)
    assert_allclose(scale.spread, [*wide.std(axis=0)[:2], 1.0], rtol=1e-10)
    made = scaled(parts, facts, scale)
    pieces = list(chunks(made, facts))
    assert len(pieces) == {24: 5, 1 << 20: 1}[chunk_bytes]
    assert_array_equal(np.concatenate([numbers for numbers, _ in pieces]), range(10))
    rows = np.concatenate([rows for _, rows in pieces])
    expected = ((wide - scale.mean) / scale.spread).astype(np.float32)
    assert_array_equal(rows[:9], expected)
    # who has no vector is in the middle of those who have
    assert_array_equal(rows[9], np.zeros(3))


def test_features_may_stay_as_they_are(spark: SparkSession) -> None:
    found, facts = matched(spark, VECTORS)
    ((_, rows),) = chunks(scaled(found, facts, None), facts)
    assert_array_equal(rows, [*FEATURES, np.zeros(3)])


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        ([("i1", [1.0, 2.0]), ("i2", [1.0])], "1 to 2 entries: all must have"),
        ([("i1", [])], "0 to 0 entries"),
        ([], "0 to 0 entries"),
        ([("i1", [1.0]), ("i1", [1.0])], "item 'i1' has 2 vectors"),
        ([("i1", [1.0]), (None, [1.0])], "1 row without item_id"),
        ([("i1", None), ("i2", [1.0])], "1 row without item_id, without features"),
        ([("i1", [float("nan")]), ("i2", [float("inf")]), ("i3", [None])], "3 rows .* finite"),
        ([("x1", [1.0]), ("x0", [1.0])], "none of the 10 items .* such as 'x0'"),
    ],
)
def test_what_cannot_be_features_is_refused(
    spark: SparkSession, vectors: Vectors, words: str
) -> None:
    with pytest.raises(InputDataError, match=f"^key: .*{words}"):
        matched(spark, vectors)


def test_a_file_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    def read(name: str, **columns: Any) -> list[Any]:
        pq.write_table(pa.table(columns), tmp_path / name)
        return read_vectors(spark, [str(tmp_path / name)], "features.given").collect()

    rows = read("a [1].parquet", item_id=pa.array([7, 8]), features=[[1, 2], [3, 4]], more=[0, 0])
    assert sorted(map(tuple, rows)) == [("7", [1.0, 2.0]), ("8", [3.0, 4.0])]
    with pytest.raises(InputDataError, match="no column 'features', only item_id, vector"):
        read("b.parquet", item_id=["a"], vector=[[1.0]])
    with pytest.raises(InputDataError, match="'features' is array<string>: make it an array"):
        read("c.parquet", item_id=["a"], features=[["x"]])
