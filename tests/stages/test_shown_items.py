"""Propensities through a run: weights of training, metrics of items shown at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.errors import ConfigError
from spark_rank.features.shown import propensities, shown_ratings
from spark_rank.frames.predict import as_shown
from spark_rank.metrics import effective_size, weighted_misranking, weighted_squared_difference
from spark_rank.records.features import FactorFacts, FeatureFacts, ShownFacts
from spark_rank.stages.training import fitted_propensities
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, MODELS, SHOWN_METRICS
from spark_rank.users.propensity_weights import with_propensity_weights
from tests.predicted import predicted

MakeConfig = Callable[..., Config]
FITTED = "features={kind: factors, rank: 2, rounds: 3, propensities: fitted}"


@pytest.fixture(scope="module")
def weighted(make_config: MakeConfig, run_pipeline: Callable[..., Run]) -> Run:
    config = make_config(FITTED, "train.weights=propensity", "evaluate.weights=propensity")
    return run_pipeline(config, without=("report", "refit"))


def facts_of(run: Run) -> ShownFacts:
    facts = run.facts(FactorFacts)
    assert facts.shown is not None
    return facts.shown


@pytest.mark.slow
def test_metrics_of_a_run_are_those_of_its_predictions(weighted: Run) -> None:
    facts, rows = facts_of(weighted), weighted.read(SHOWN_METRICS).collect()
    sizes = {row["user_id"]: row["n_train"] for row in weighted.read(BLOCKS).collect()}
    limits = weighted.read(BLOCKS).select(F.explode("ratings")).agg(F.min("col"), F.max("col"))
    low, high = limits.collect()[0]
    users = predicted(weighted)
    assert {row["learner"] for row in rows} == {learner for _, learner in users}
    for row in rows:
        own = {user: made for (user, learner), made in users.items() if learner == row["learner"]}
        msd, misranking, weights, errors = [], [], [], []
        for user, made in own.items():
            scores = shown_ratings(facts, np.array(made.scores, dtype=float))
            weight = 1 / propensities(facts, made.ratings, sizes[user])
            msd.append(weighted_squared_difference(scores, made.ratings, weight))
            misranking.append(weighted_misranking(scores, made.ratings, weight))
            weights.append(weight)
            errors.append(np.clip(scores, low, high) - made.ratings)
        w, e = np.concatenate(weights), np.concatenate(errors)
        assert row["users"] == len(own)
        assert row["ratings"] == len(w)
        assert row["effective_ratings"] == pytest.approx(effective_size(w))
        assert row["rmse"] == pytest.approx(np.sqrt(w @ e**2 / w.sum()), rel=1e-6)
        assert row["mean_error"] == pytest.approx(w @ e / w.sum(), abs=1e-6)
        for name, values in (("msd", msd), ("misranking", misranking)):
            defined = [value for value in values if value is not None]
            assert row[name] == pytest.approx(np.mean(defined), rel=1e-6)


def test_models_are_learned_with_the_weights(weighted: Run) -> None:
    blocks = weighted.read(BLOCKS).orderBy("user").toArrow().combine_chunks()
    weights = with_propensity_weights(blocks.to_batches()[0], facts_of(weighted))
    by_user = dict(zip(blocks.column("user_id").to_pylist(),
                       weights.column("weights").to_pylist(), strict=True))  # fmt: skip
    ratings = dict(zip(blocks.column("user_id").to_pylist(),
                       blocks.column("ratings").to_pylist(), strict=True))  # fmt: skip
    learned = weighted.read(MODELS).where("learner = 'mprank_linear' and status = 'learned'")
    constants = weighted.read(MODELS).where("learner = 'constant'").collect()
    levels = {row["user_id"]: row["intercept"] for row in constants}
    assert learned.count() > 40
    for row in learned.collect():
        user, n = row["user_id"], row["n_train"]
        mean = np.average(ratings[user][:n], weights=by_user[user][:n])
        # the baseline is weighted as well, and its constant is the weighted mean
        assert levels[user] == pytest.approx(mean, rel=1e-5)


def test_the_columns_curve_is_that_of_arrays(spark: SparkSession) -> None:
    facts = ShownFacts(0.7, 3.0, (0.1, 0.4, 0.2), 1.5, 4.5, 100, 40.0)
    scores = np.linspace(-2, 8, 21)
    frame = spark.range(21).select((F.col("id") * 0.5 - 2.0).alias("s"))
    found = [row[0] for row in frame.select(as_shown(F.col("s"), facts)).collect()]
    assert found == pytest.approx(shown_ratings(facts, scores).tolist())


def test_what_needs_propensities_says_so(make_config: MakeConfig) -> None:
    with pytest.raises(ConfigError, match="train.weights: 'propensity' needs features.kind"):
        make_config("train.weights=propensity")
    with pytest.raises(ConfigError, match=r"train.learners\[0\]: a learner without weights"):
        make_config(FITTED, "train={weights: propensity, learners: [{learner: prank}]}")
    plain = FeatureFacts(files=None, squared_radius=1.0)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="evaluate.weights: needs the propensities"):
        fitted_propensities("evaluate.weights", plain)
