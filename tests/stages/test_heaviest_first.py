"""The order of the buckets: what takes longest is begun first, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.config.schema import LearnerConfig, TrainConfig
from spark_rank.stages import heaviest_first
from spark_rank.stages.heaviest_first import bucket_seconds, by_cost, in_order, user_cost

KERNEL = Config(train=TrainConfig(learners=[LearnerConfig(params={"kernel": "rbf"})]))
BUCKETS = 6


def counted(users: list[tuple[int, int]]) -> pa.Table:
    """Return ``bucket, n_train, users`` of users given as (bucket, n_train), in that order."""
    kinds = list(dict.fromkeys(users))
    rows = [{"bucket": kind[0], "n_train": kind[1], "users": users.count(kind)} for kind in kinds]
    columns = [("bucket", pa.int32()), ("n_train", pa.int32()), ("users", pa.int64())]
    return pa.Table.from_pylist(rows, pa.schema(columns))


@given(
    st.lists(st.tuples(st.integers(0, BUCKETS - 1), st.integers(1, 9000)), max_size=30),
    st.randoms(use_true_random=False),
)
@settings(max_examples=50)
def test_a_bucket_takes_as_long_as_its_users(users: list[tuple[int, int]], random: object) -> None:
    found = bucket_seconds(KERNEL, counted(users), BUCKETS)
    expected = np.zeros(BUCKETS)
    for bucket, n_train in users:
        expected[bucket] += user_cost(KERNEL.train, KERNEL.features.width, n_train)
    np.testing.assert_allclose(found, expected)
    random.shuffle(users)  # type: ignore[attr-defined]
    assert bucket_seconds(KERNEL, counted(users), BUCKETS).tolist() == found.tolist()


def test_few_heavy_users_take_longer_than_many_light_ones() -> None:
    # the second bucket has more ratings, and a larger file
    users = [(0, 3000), *[(1, 40)] * 100]
    seconds = bucket_seconds(KERNEL, counted(users), 2)
    assert seconds[0] > seconds[1]


@pytest.mark.parametrize("most_scans", [64, 2])
def test_tasks_begin_with_the_longest_bucket(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_scans: int
) -> None:
    monkeypatch.setattr(heaviest_first, "_MOST_SCANS", most_scans)
    users = [(1, 900), (3, 30), (3, 40), (0, 50), (4, 2000), (4, 10)]
    rows = [(user, bucket, n_train) for user, (bucket, n_train) in enumerate(users)]
    frame = spark.createDataFrame(rows, "user int, bucket int, n_train int")
    frame.repartition("bucket").write.partitionBy("bucket").parquet(str(tmp_path / "blocks"))
    blocks = spark.read.parquet(str(tmp_path / "blocks"))
    order = by_cost(KERNEL, blocks, BUCKETS)
    assert order == [4, 1, 3, 0, 2, 5]  # those without users last, by number
    placed = in_order(blocks, [bucket for bucket in order if bucket != 1])
    found = placed.select(F.spark_partition_id().alias("task"), "bucket", "user").collect()
    assert sorted(row["user"] for row in found) == [1, 2, 3, 4, 5]
    buckets = [row["bucket"] for row in sorted(found, key=lambda row: row["task"])]
    assert list(dict.fromkeys(buckets))[:2] == [4, 3]
