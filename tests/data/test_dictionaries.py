"""Dense numbers are 0..n-1 and do not depend on partitions; ids stay unchanged."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_rank.data.dictionaries import number_ids

IDS = ["007", "7", "70000000000", "ä", "a b", "'; drop", *[f"u{i}" for i in range(900)]]


def numbered(
    spark: SparkSession, ids: list[str], partitions: int, *, few: bool = False
) -> dict[str, int]:
    frame = spark.createDataFrame([(i,) for i in ids], "id string").repartition(partitions)
    return {row["id"]: row["n"] for row in number_ids(frame, "id", "n", few=few).collect()}


def test_numbers_are_dense_and_ids_untouched(spark: SparkSession) -> None:
    numbers = numbered(spark, IDS + IDS[:50], 3)
    assert numbers.keys() == set(IDS)
    assert sorted(numbers.values()) == list(range(len(IDS)))


@pytest.mark.parametrize("partitions", [1, 7])
def test_partitioning_and_order_do_not_matter(spark: SparkSession, partitions: int) -> None:
    assert numbered(spark, IDS[::-1], partitions) == numbered(spark, IDS, 3)


def test_few_ids_get_the_numbers_that_many_would(spark: SparkSession) -> None:
    # beyond the surrogates the order of bytes is not that of UTF-16
    ids = [*IDS, "\U0001f600", "\uffee", "A", "Ä", "z"]
    assert numbered(spark, ids + ids[:50], 3, few=True) == numbered(spark, ids, 3)


@pytest.mark.parametrize("few", [True, False])
def test_no_ids_no_numbers(spark: SparkSession, few: bool) -> None:
    assert numbered(spark, [], 1, few=few) == {}


def test_known_ids_keep_their_numbers(spark: SparkSession) -> None:
    known = number_ids(spark.createDataFrame([(i,) for i in IDS[:400]], "id string"), "id", "n")
    before = {row["id"]: row["n"] for row in known.collect()}
    for ids, partitions in ((IDS[200:], 2), (IDS[:199:-1], 9)):
        frame = spark.createDataFrame([(i,) for i in ids], "id string").repartition(partitions)
        rows = number_ids(frame, "id", "n", known).collect()
        after = {row["id"]: row["n"] for row in rows}
        assert len(rows) == len(IDS)
        assert before.items() <= after.items()
        assert sorted(after.values()) == list(range(len(IDS)))
