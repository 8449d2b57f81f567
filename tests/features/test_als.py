"""Features by ALS are whitened, and do not depend on partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import Config
from spark_rank.errors import InputDataError
from spark_rank.features.als import whitened_features
from spark_rank.features.files import ItemFeatures
from spark_rank.features.user_prior import UserPrior
from spark_rank.frames.item_features import FeatureArrays, als_features, item_table
from spark_rank.ml import PerUserRanker
from spark_rank.session.session import runtime_setting
from spark_rank.store.run import Run

SCHEMA = "user int, user_id string, items array<int>, ratings array<float>, n_train int"
N_ITEMS = 40


def tastes(
    spark: SparkSession, *, users: int = 200, unit: float = 1.0, spread: int = 2
) -> DataFrame:
    """Return users of two camps, who like the even items or the odd ones; 12 of 20 to train."""
    rng = np.random.default_rng(0)
    rows = []
    for user in range(users):
        items = rng.choice(N_ITEMS - 1, 20, replace=False)  # nobody has rated the last item
        ratings = 3.0 + np.where((items + user) % 2 == 0, 1.0, -1.0) + rng.normal(0, 0.5, 20)
        values = [float(value) for value in np.float32(ratings * unit)]
        rows.append((user, f"u{user}", [int(item) for item in items], values, 12))
    return spark.createDataFrame(rows, SCHEMA).repartition(spread)


def catalogue(spark: SparkSession) -> DataFrame:
    rows = [(item, f"i{item}") for item in range(N_ITEMS)]
    return spark.createDataFrame(rows, "item int, item_id string")


def learned(spark: SparkSession, blocks: DataFrame, **more: Any) -> FeatureArrays:
    settings = {"rank": 2, "rounds": 4, "regularization": 0.1, "shrinkage": 10.0, "seed": 3}
    return als_features(blocks, catalogue(spark), **{**settings, **more})


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> FeatureArrays:
    return learned(spark, tastes(spark))


def errors(spark: SparkSession, made: FeatureArrays, unit: float = 1.0) -> tuple[float, float]:
    """Return squared errors of held-out ratings: by ridge 1 on the features, by the offset."""
    offset = made.items.column("offset").to_numpy()
    ids = made.items.column("item_id").combine_chunks()
    opened = ItemFeatures(made.matrix, offset, made.prior, ids)
    own, by_offset = [], []
    for row in tastes(spark, unit=unit).collect():
        items, ratings, n = np.array(row["items"], np.int32), np.array(row["ratings"]), 12
        expected = opened.expected_weights(items[:n])
        assert expected is not None
        X, left = made.matrix[items].astype(float), ratings - offset[items]
        mean = left[:n].mean()
        seen, target = X[:n], left[:n] - mean - (X[:n] @ expected - (X[:n] @ expected).mean())
        seen = seen - seen.mean(axis=0)
        weights = expected + np.linalg.solve(seen.T @ seen + np.eye(3), seen.T @ target)
        score = X @ weights
        own.append(left[n:] - mean - (score[n:] - score[:n].mean()))
        by_offset.append(left[n:] - mean)
    return float(np.mean(np.square(own))), float(np.mean(np.square(by_offset)))


def test_they_tell_what_the_offset_does_not(spark: SparkSession, made: FeatureArrays) -> None:
    own, by_offset = errors(spark, made)
    # the noise of a rating is 0.25, plus that of a user's mean
    assert own < 0.4
    assert by_offset > 1.0


def test_the_partitions_of_the_input_change_no_byte(
    spark: SparkSession, made: FeatureArrays
) -> None:
    again = learned(spark, tastes(spark, spread=5))
    assert again.matrix.tobytes() == made.matrix.tobytes()
    assert again.prior.tobytes() == made.prior.tobytes()


@pytest.mark.slow
def test_the_unit_of_ratings_is_only_a_unit(spark: SparkSession, made: FeatureArrays) -> None:
    other = learned(spark, tastes(spark, unit=16.0))
    assert_allclose(other.matrix, made.matrix, rtol=1e-3, atol=1e-4)
    assert_allclose(other.prior, 16.0 * made.prior, rtol=1e-3, atol=2e-3)


def test_a_share_and_an_item_that_nobody_rates(spark: SparkSession) -> None:
    found = learned(spark, tastes(spark), user_share=0.5)
    facts = found.facts(None)  # type: ignore[arg-type]
    assert 70 < facts.users < 130  # type: ignore[attr-defined]
    assert facts.ratings == 12 * facts.users  # type: ignore[attr-defined]
    # without factors its vector is that of a mean item: the column of ones alone
    assert np.count_nonzero(found.matrix[-1]) == 1
    with pytest.raises(InputDataError, match=r"raise features\.user_share"):
        learned(spark, tastes(spark), user_share=1e-9)


@pytest.mark.slow
def test_one_user_is_enough(spark: SparkSession) -> None:
    found = learned(spark, tastes(spark, users=1))
    assert np.isfinite(found.matrix).all()
    assert np.isfinite(found.prior).all()


def test_features_are_whitened_some_items_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    vectors, offsets = rng.normal(size=(11, 2)).astype(np.float32), rng.normal(size=11)
    spread = rng.normal(size=(3, 3))
    prior = UserPrior(rng.normal(size=(5, 3)), rng.normal(size=3), spread @ spread.T, 0.4)
    whole = whitened_features(vectors, offsets, prior)
    monkeypatch.setattr("spark_rank.features.als._ROWS_AT_ONCE", 4)
    for array, same in zip(whitened_features(vectors, offsets, prior), whole, strict=True):
        assert_allclose(array, same, rtol=1e-6)
    # the prior of a user who rated some items, before and after whitening
    items, z = np.array([2, 5, 7]), np.column_stack([np.ones(11), vectors])
    x = np.array([*z[items].sum(axis=0), offsets[items].sum()]) / np.sqrt(3)
    mean = np.array([*x, np.log(3)]) @ prior.slopes + prior.constants
    opened = ItemFeatures(whole[0], offsets, whole[1], None)  # type: ignore[arg-type]
    assert_allclose(opened.matrix @ opened.expected_weights(items), z @ mean, rtol=1e-4)


def test_many_items_are_several_files(
    spark: SparkSession, made: FeatureArrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task of the driver's table must fit into one message of Spark's."""
    monkeypatch.setattr("spark_rank.frames.item_features._TASK_BYTES", 3 * 4 * 10)
    # a table above this limit comes in batches, as a large one does
    with runtime_setting(spark, "spark.sql.execution.arrow.localRelationThreshold", "1"):
        table = item_table(spark, made.items, made.matrix)
        assert table.rdd.getNumPartitions() == 4
        assert table.count() == N_ITEMS


@pytest.mark.slow
def test_the_estimator_learns_from_them(spark: SparkSession) -> None:
    rows = [
        (row["user_id"], item, rating)
        for row in tastes(spark, users=60).collect()
        for item, rating in zip(row["items"][:12], row["ratings"][:12], strict=True)
    ]
    ratings = spark.createDataFrame(rows, "user string, item int, rating float")
    model = PerUserRanker(featureKind="als", rank=2, alsRounds=3, numBuckets=2).fit(ratings)
    found = {(row["user"], row["item"]): row["prediction"]
             for row in model.transform(ratings).collect()}  # fmt: skip
    truth = np.array([rating for _, _, rating in rows])
    scores = np.array([found[user, item] for user, item, _ in rows])
    assert np.corrcoef(scores, truth)[0, 1] > 0.8


@pytest.mark.slow
def test_a_run_from_input_to_lists(
    spark: SparkSession, make_config: Callable[..., Config], run_pipeline: Callable[..., Run]
) -> None:
    more = "synthesize={users: 1500, items: 80, median_ratings: 25}"
    run = run_pipeline(
        make_config(
            more, "features={kind: als, rank: 4, als_rounds: 5}", "recommend.in_pipeline=true"
        ),
        without=("rank", "aggregate"),
    )
    means = (run.record("evaluate") or {})["facts"]["means"]
    assert means["mprank_linear"]["msd"] < means["item_offset"]["msd"] < means["constant"]["msd"]
    assert "80 items × 4 factors from" in (run.record("features") or {})["message"]
