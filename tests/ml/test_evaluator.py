"""The evaluator: means over users of the package's metrics, by definition."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from sklearn.metrics import root_mean_squared_error

from spark_rank.errors import ConfigError, InputDataError
from spark_rank.ml import PerUserEvaluator
from spark_rank.users.measuring import METRIC_NAMES


@pytest.fixture(scope="module")
def predicted(spark: SparkSession) -> DataFrame:
    rng = np.random.default_rng(5)
    ratings = rng.integers(1, 6, 200).astype(float)
    return spark.createDataFrame(pa.table({
        "user": rng.integers(0, 20, 200), "rating": ratings,
        "prediction": (ratings + rng.normal(size=200)).astype(np.float32).astype(float),
    }))  # fmt: skip


def by_user(predicted: DataFrame) -> dict[int, list[tuple[float, float]]]:
    found: dict[int, list[tuple[float, float]]] = {}
    for row in predicted.collect():
        found.setdefault(row["user"], []).append((row["rating"], row["prediction"]))
    return found


def test_the_mean_is_over_users_with_a_value(predicted: DataFrame) -> None:
    shares = []
    for rows in by_user(predicted).values():
        pairs = [(a, b) for a, b in combinations(rows, 2) if a[0] != b[0]]
        wrong = [(a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in pairs]
        if pairs:
            shares.append(float(np.mean(wrong)))
    found = PerUserEvaluator().evaluate(predicted)
    assert found == pytest.approx(float(np.mean(shares)), rel=1e-9)
    assert PerUserEvaluator().evaluate(predicted.repartition(7)) == found


@pytest.mark.parametrize("name", METRIC_NAMES)
def test_every_metric_has_a_value(predicted: DataFrame, name: str) -> None:
    evaluator = PerUserEvaluator(metricName=name, topN=3)
    assert math.isfinite(evaluator.evaluate(predicted))
    best = predicted.drop("prediction").withColumn("prediction", predicted["rating"])
    better = evaluator.evaluate(best) - evaluator.evaluate(predicted)
    assert better * (1 if evaluator.isLargerBetter() else -1) >= 0


def test_errors_are_per_user_and_clipped_to_the_ratings(predicted: DataFrame) -> None:
    of_users = []
    for rows in by_user(predicted).values():
        ratings, predictions = np.array(rows).T
        of_users.append(root_mean_squared_error(ratings, np.clip(predictions, 1.0, 5.0)))
    found = PerUserEvaluator(metricName="rmse").evaluate(predicted)
    assert found == pytest.approx(float(np.mean(of_users)), rel=1e-6)


def test_what_cannot_be_measured_is_named(
    spark: SparkSession, predicted: DataFrame, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="metricName 'rsme' is unknown: use one of"):
        PerUserEvaluator(metricName="rsme").evaluate(predicted)
    lost = predicted.selectExpr("user", "rating", "if(user = 3, double('nan'), 1D) as prediction")
    with pytest.raises(InputDataError, match="predictions are null or NaN: set the model's cold"):
        PerUserEvaluator().evaluate(lost)
    assert math.isnan(PerUserEvaluator().evaluate(predicted.limit(0)))
    PerUserEvaluator(topN=4).save(str(tmp_path / "evaluator"))
    assert PerUserEvaluator.load(str(tmp_path / "evaluator")).getOrDefault("topN") == 4
