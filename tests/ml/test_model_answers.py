"""Predictions for unknown users, folding in, metrics and explanations of a model."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_rank.errors import InputDataError
from spark_rank.ml import PerUserRanker, PerUserRankerModel
from tests.ml.conftest import Given, frame_of, rows_of


@pytest.fixture(scope="module")
def pairs(spark: SparkSession) -> DataFrame:
    """Return rows about known and unknown users and items, one twice, and columns of one's own."""
    users = ["u1", "u1", "u1", "stranger", "stranger", None, "u2", "u2"]
    items = ["i1", "i1", "novelty", "i1", "novelty", "i2", None, "i2"]
    table = {"user": users, "item": items, "place": list(range(8)), "note": ["x"] * 8}
    return spark.createDataFrame(pa.table(table))


def predictions(model: PerUserRankerModel, pairs: DataFrame, **params: str) -> dict[int, float]:
    found = model.transform(pairs, {model.getParam(name): params[name] for name in params})
    assert found.columns == [*pairs.columns, "prediction"]
    return {row["place"]: row["prediction"] for row in found.collect()}


UNKNOWN = {2, 3, 4, 5, 6}


def test_strangers_get_what_is_expected_of_them(
    fitted: PerUserRankerModel, pairs: DataFrame, given: Given
) -> None:
    found = predictions(fitted, pairs)
    assert found.keys() == set(range(8))
    assert all(np.isfinite(value) for value in found.values())
    assert found[0] == found[1]
    features = fitted.trained.opened
    expected = features.expected_weights(np.empty(0, dtype=np.int32))
    together = features.matrix @ expected + features.offset
    scores = dict(zip(features.item_ids.to_pylist(), together.tolist(), strict=True))
    level = np.mean([rating - scores[item] for (_, item), rating in given.items()])
    assert found[3] == pytest.approx(level + scores["i1"], rel=1e-5)
    average = features.matrix.mean(axis=0) @ expected
    assert found[4] == pytest.approx(level + average, rel=1e-5)
    assert found[5] == pytest.approx(level + scores["i2"], rel=1e-5)
    # a new item is the user's average one
    row = next(row for row in rows_of(fitted.userModels)
               if (row["user_id"], row["learner"]) == ("u1", "mprank_linear"))  # fmt: skip
    own = row["intercept"] + features.matrix.mean(axis=0) @ np.array(row["weights"])
    assert found[2] == pytest.approx(own, rel=1e-5)


def test_strangers_are_nan_or_left_out_where_asked(
    fitted: PerUserRankerModel, pairs: DataFrame
) -> None:
    found = predictions(fitted, pairs, coldStartStrategy="nan")
    assert {place for place, value in found.items() if np.isnan(value)} == UNKNOWN
    left = predictions(fitted, pairs, coldStartStrategy="drop")
    assert left.keys() == set(range(8)) - UNKNOWN
    assert left == {place: found[place] for place in left}
    with pytest.raises(InputDataError, match="'guess' is unknown: use fallback, nan or drop"):
        predictions(fitted, pairs, coldStartStrategy="guess")


def test_a_user_folded_in_is_the_user_learned(
    spark: SparkSession, fitted: PerUserRankerModel, given: Given
) -> None:
    own = {("u3", item): rating for (user, item), rating in given.items() if user == "u3"}
    twin = {("twin", item): 6 - rating for (_, item), rating in own.items()}
    folded = fitted.foldIn(frame_of(spark, own | twin | {("u3", "never seen"): 2}))
    before, after = rows_of(fitted.userModels), rows_of(folded.userModels)
    new = [row for row in after if row["user_id"] == "twin"]
    assert [row for row in after if row["user_id"] != "twin"] == before
    assert {row["learner"] for row in new} == {"mprank_linear", "item_offset"}
    assert {row["n_train"] for row in new} == {len(own)}
    assert folded.recommendForUserSubset(frame_of(spark, twin), 3).count() == 1
    assert fitted.recommendForUserSubset(frame_of(spark, twin), 3).count() == 0
    with pytest.raises(InputDataError, match="none of the rated items has features"):
        fitted.foldIn(frame_of(spark, {("u3", "never seen"): 2}))


def test_items_like_others_are_listed(spark: SparkSession, fitted: PerUserRankerModel) -> None:
    asked = spark.sql("select explode(array('i1', 'i2', 'nothing')) as item")
    found = {row["item"]: row["similar"] for row in fitted.similarItems(asked, 4).collect()}
    assert found.keys() == {"i1", "i2"}
    for item, similar in found.items():
        assert len(similar) == 4
        assert item not in {entry["item"] for entry in similar}
        cosines = [entry["similarity"] for entry in similar]
        assert cosines == sorted(cosines, reverse=True)


def test_an_explanation_adds_up_to_the_prediction(
    spark: SparkSession, fitted: PerUserRankerModel
) -> None:
    told = fitted.explain("u1", "i3")
    predicted = predictions(
        fitted, spark.sql("select 'u1' as user, 'i3' as item, 0 as place")
    )  # fmt: skip
    assert sum(told["item"]["parts"].values()) == pytest.approx(predicted[0], rel=1e-5)
    assert told["item"]["score"] == pytest.approx(predicted[0], rel=1e-5)
    lists = fitted.explain("u1")
    best = fitted.recommendForUserSubset(spark.sql("select 'u1' as user"), 3).head()
    assert [row["item_id"] for row in lists["top"][:3]] == [
        entry["item"] for entry in best["recommendations"]
    ]
    for user, item, words in (("nobody", None, "no user 'nobody'"), ("u1", "x", "no item 'x'")):
        with pytest.raises(InputDataError, match=words):
            fitted.explain(user, item)


@pytest.mark.parametrize("kind", ["panel", "offset"])
@pytest.mark.slow
def test_a_user_without_a_prior_is_explained(rated: DataFrame, kind: str) -> None:
    model = PerUserRanker(numBuckets=3, featureKind=kind, panelSize=3).fit(rated)
    parts = model.explain("u1", "i3")["item"]["parts"]
    (predicted,) = predictions(
        model, rated.sparkSession.sql("select 'u1' as user, 'i3' as item, 0 as place")
    ).values()
    assert sum(parts.values()) == pytest.approx(predicted, rel=1e-5)


def test_lists_without_beta_are_those_of_the_predictions(rated: DataFrame) -> None:
    model = PerUserRanker(numBuckets=3, rank=2, rounds=2, beta=0.0).fit(rated)
    rows = model.recommendForAllUsers(3).collect()
    assert rows
    for row in rows:
        ratings = [entry[1] for entry in row["recommendations"]]
        assert ratings == sorted(ratings, reverse=True)
    blended = model.copy({model.getParam("beta"): 50.0}).recommendForAllUsers(3).collect()
    assert {row[0]: row[1] for row in blended} != {row[0]: row[1] for row in rows}
