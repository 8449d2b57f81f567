"""`weightCol`: a rating of weight 2 counts twice when its user's model is learned."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.errors import ConfigError, InputDataError
from spark_rank.learners import MPRank
from spark_rank.ml import PerUserRanker
from tests.ml.conftest import SMALL, Given, rows_of

GENRES = {"learnerParams": {"C": 2.0, "ridge": "fixed"}, "itemOffset": False}


@pytest.fixture(scope="module")
def weighted(spark: SparkSession, given: Given) -> DataFrame:
    weights = np.random.default_rng(3).integers(1, 4, len(given)) / 2.0
    columns = {"user": [user for user, _ in given], "item": [item for _, item in given],
               "rating": [float(rating) for rating in given.values()], "w": weights}  # fmt: skip
    return spark.createDataFrame(pa.table(columns))


def test_models_are_those_of_the_weighted_learner(weighted: DataFrame) -> None:
    model = PerUserRanker(**SMALL, **GENRES, weightCol="w").fit(weighted)
    features = {row["item_id"]: row["features"] for row in model.itemFeatures.collect()}
    own = model.userModels.where("learner = 'mprank' and status = 'learned'")
    found = {row["user_id"]: row for row in own.collect()}
    ratings = weighted.toArrow().to_pylist()
    assert len(found) > 20
    for user, row in found.items():
        mine = [one for one in ratings if one["user"] == user]
        expected = MPRank(2.0, ridge="fixed").fit(
            np.array([features[one["item"]] for one in mine]),
            [one["rating"] for one in mine],
            sample_weight=[one["w"] for one in mine],
        )
        assert expected.coef_ is not None
        np.testing.assert_allclose(row["weights"], expected.coef_, atol=1e-5)
        assert row["intercept"] == pytest.approx(expected.intercept_, abs=1e-5)


@pytest.mark.slow
def test_equal_weights_change_nothing(weighted: DataFrame, rated: DataFrame) -> None:
    ones = weighted.withColumn("w", F.lit(1))
    plain = PerUserRanker(**SMALL).fit(rated)
    equal = PerUserRanker(**SMALL, weightCol="w").fit(ones)
    pairs = rated.limit(50)
    for left, right in zip(
        rows_of(plain.transform(pairs)), rows_of(equal.transform(pairs)), strict=True
    ):
        assert left.pop("prediction") == pytest.approx(right.pop("prediction"), abs=1e-5)
        assert left == right


@pytest.mark.slow
def test_folded_users_are_weighted_too(weighted: DataFrame) -> None:
    model = PerUserRanker(**SMALL, weightCol="w").fit(weighted)
    again = weighted.where("user = 'u1'")
    assert again.count() > 3
    folded = model.foldIn(again).userModels.where("user_id = 'u1'")
    assert rows_of(folded) == rows_of(model.userModels.where("user_id = 'u1'"))


@pytest.mark.parametrize(
    ("change", "settings", "error", "words"),
    [
        (None, {}, InputDataError, "have a weight that is not a number above 0"),
        (float("nan"), {}, InputDataError, "have a weight that is not a number above 0"),
        (0.0, {}, InputDataError, "have a weight that is not a number above 0"),
        (1.0, {"learner": "prank"}, ConfigError, "'prank' takes no weights"),
        (1.0, {"learnerGrid": {"C": [1.0, 2.0]}}, ConfigError, "a grid cannot be searched"),
    ],
    ids=["null", "nan", "zero", "learner", "grid"],
)
def test_weights_that_cannot_be_used_are_refused(
    weighted: DataFrame,
    change: Any,
    settings: dict[str, Any],
    error: type[Exception],
    words: str,
    nothing_left: Callable[[], AbstractContextManager[None]],
) -> None:
    ranker = PerUserRanker(**SMALL, **settings, weightCol="w")
    with nothing_left(), pytest.raises(error, match=words):
        ranker.fit(weighted.withColumn("w", F.lit(change)))


def test_a_pair_has_one_weight(weighted: DataFrame) -> None:
    twice = weighted.union(weighted.limit(2))
    with pytest.raises(InputDataError, match="2 rows repeat a pair: add up their weights first"):
        PerUserRanker(**SMALL, weightCol="w").fit(twice)
