"""Buckets of users: one function for Python, Arrow and Spark, and even for all kinds of ids."""

from __future__ import annotations

from collections import Counter
from zlib import crc32

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_rank.tables.user_buckets import bucket_column, bucket_of, id_hashes

IDS = ["", "7", "007", "u42", "Zoë", "日本語", "\U0001f600", "a" * 100_000, "\x00", " u42 "]


@pytest.mark.parametrize("buckets", [1, 3, 8, 100_000])
def test_spark_and_arrow_say_what_python_says(spark: SparkSession, buckets: int) -> None:
    expected = [crc32(text.encode()) % buckets for text in IDS]
    assert [bucket_of(text, buckets) for text in IDS] == expected
    assert (id_hashes(pa.array(IDS)) % buckets).tolist() == expected
    rows = spark.createDataFrame(pa.table({"user_id": IDS})).select(bucket_column(buckets))
    assert rows.toArrow().column(0).to_pylist() == expected


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))), st.integers(0, 5))
def test_a_part_of_an_array_has_the_hashes_of_its_ids(texts: list[str], skipped: int) -> None:
    found = id_hashes(pa.array(texts, pa.string()).slice(skipped))
    assert found.tolist() == [bucket_of(text, 2**32) for text in texts[skipped:]]


@pytest.mark.parametrize("buckets", [2, 8, 24, 200])
@pytest.mark.parametrize(
    "name", ["{}", "user-{:08d}", "{:x}", "{0}00", "u{}@example.com", "{:032b}", "{}.0"]
)
def test_buckets_are_of_much_the_same_size(name: str, buckets: int) -> None:
    sizes = Counter(bucket_of(name.format(number), buckets) for number in range(20_000))
    assert len(sizes) == buckets
    assert max(sizes.values()) < 1.4 * 20_000 / buckets
