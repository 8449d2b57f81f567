"""Distributions over users against NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pyspark.sql import Row, SparkSession
from scipy import stats

from spark_rank.engine.summaries import summarise

RNG = np.random.default_rng(0)
VALUES = RNG.gamma(2.0, 1.0, 301)


def rows(spark: SparkSession, parts: int) -> dict[tuple[str, str], Row]:
    data = [("a", float(v), None if i % 3 else float(v) / 7) for i, v in enumerate(VALUES)]
    data += [("b", 0.5, None)]
    frame = spark.createDataFrame(data, "learner string, msd double, misranking double")
    made = summarise(frame.repartition(parts), ("msd", "misranking"))
    return {(row["learner"], row["metric"]): row for row in made.collect()}


def test_against_numpy_and_scipy(spark: SparkSession) -> None:
    row = rows(spark, 3)["a", "msd"]
    assert row["users"] == 301
    assert_allclose(row["mean"], VALUES.mean(), rtol=1e-12)
    assert_allclose(row["sd"], VALUES.std(ddof=1), rtol=1e-10)
    interval = stats.ttest_1samp(VALUES, 0.0).confidence_interval(0.95)
    assert_allclose((row["ci_low"], row["ci_high"]), interval, rtol=1e-10)
    shares = [0.05, 0.25, 0.5, 0.75, 0.95]
    found = [row[name] for name in ("p05", "p25", "p50", "p75", "p95")]
    assert_allclose(found, np.quantile(VALUES, shares), rtol=1e-12)


def test_undefined_values_do_not_count(spark: SparkSession) -> None:
    made = rows(spark, 2)
    assert made["a", "misranking"]["users"] == 101
    assert_allclose(made["a", "misranking"]["mean"], VALUES[::3].mean() / 7, rtol=1e-12)
    empty = made["b", "misranking"]
    assert (empty["users"], empty["mean"], empty["sd"], empty["ci_low"]) == (0, None, None, None)
    single = made["b", "msd"]
    assert (single["mean"], single["sd"], single["ci_high"]) == (0.5, None, None)


@pytest.mark.parametrize("parts", [1, 8])
def test_the_partitioning_changes_no_bit(spark: SparkSession, parts: int) -> None:
    assert rows(spark, parts) == rows(spark, 3)
