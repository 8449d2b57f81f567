"""Pairwise majorities in Spark against a double loop, for full, partial and tied ratings."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from spark_rank.frames.majority_counts import rating_majorities
from spark_rank.preference import count_majorities

RNG = np.random.default_rng(3)
ROWS = [
    (sorted(RNG.choice(30, size, replace=False).tolist()), RNG.integers(1, 6, size).tolist())
    for size in RNG.integers(0, 25, 80)
]


@pytest.mark.parametrize("parts", [1, 5])
def test_against_a_double_loop(spark: SparkSession, parts: int) -> None:
    rows = [([int(i) for i in items], [float(r) for r in ratings]) for items, ratings in ROWS]
    blocks = spark.createDataFrame(rows, "items array<int>, ratings array<float>")
    candidates = np.array([7, 3, 22, 11, 0, 29], dtype=np.int64)
    counts = rating_majorities(blocks.repartition(parts), candidates)
    expected = np.zeros((6, 6), dtype=np.int64)
    for items, ratings in rows:
        own = dict(zip(items, ratings, strict=True))
        for u, first in enumerate(candidates):
            for v, second in enumerate(candidates):
                if first in own and second in own and own[first] > own[second]:
                    expected[u, v] += 1
    assert expected.sum() > 50
    assert (counts == expected).all()


def test_it_counts_as_the_aggregation_of_ratings_does(spark: SparkSession) -> None:
    rows = [([int(i) for i in items], [float(r) for r in ratings]) for items, ratings in ROWS]
    blocks = spark.createDataFrame(rows, "items array<int>, ratings array<float>")
    everything = np.arange(30, dtype=np.int64)
    voters = [dict(zip(items, ratings, strict=True)) for items, ratings in rows]
    expected, _ = count_majorities(voters, list(range(30)))
    assert (rating_majorities(blocks, everything) == expected).all()
