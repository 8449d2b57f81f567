"""Parameters, pipelines and searches of pyspark.ml."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.feature import SQLTransformer
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder, TrainValidationSplit
from pyspark.sql import DataFrame

from spark_rank.config import load_config
from spark_rank.learners.registry import PER_USER
from spark_rank.ml import PerUserEvaluator, PerUserRanker
from tests.ml.conftest import SMALL, rows_of


def test_the_defaults_are_those_of_the_command_line() -> None:
    ours = PerUserRanker().config()
    theirs = load_config(None, ["prepare.train_share=1.0", "input.format=csv"])
    assert ours == theirs


def test_parameters_set_the_keys_that_they_name() -> None:
    ranker = PerUserRanker(
        seed=3, numBuckets=5, rank=7, minRatings=4, duplicates="first", cuts=[2.5],
        learner="svrank", learnerName="mine", learnerParams={"C": 2.0}, topN=3,
    )  # fmt: skip
    expected = load_config(None, [
        "prepare={train_share: 1.0, buckets: 5}", "seed=3", "features.rank=7",
        "train={min_ratings: 4, learners: [{learner: svrank, name: mine, params: {C: 2.0}}]}",
        "input={format: csv, duplicates: first, cuts: [2.5]}", "evaluate.top_n=3",
    ])  # fmt: skip
    assert ranker.config() == expected
    assert ranker.copy({ranker.rank: 9}).config().features.rank == 9
    assert ranker.getOrDefault("rank") == 7
    assert ranker.setParams(rank=8).config().features.rank == 8
    with pytest.raises(TypeError):
        PerUserRanker(rank="many")


@pytest.mark.parametrize("learner", PER_USER)
def test_every_learner_can_be_asked_for(learner: str) -> None:
    assert PerUserRanker(learner=learner).config().train.learners[0].learner == learner


def test_every_parameter_is_explained() -> None:
    text = PerUserRanker(rank=7).explainParams()
    assert (
        "rank: factors and als: number of factors (features.rank) (default: 32, current: 7)" in text
    )
    assert "coldStartStrategy: what `transform` does" in text


def test_it_is_a_stage_of_a_pipeline(rated: DataFrame, tmp_path: Path) -> None:
    halve = SQLTransformer(statement="select user, item, rating / 2 as rating from __THIS__")
    pipeline = Pipeline(stages=[halve, PerUserRanker(**SMALL)])
    pipeline.save(str(tmp_path / "pipeline"))
    model = Pipeline.load(str(tmp_path / "pipeline")).fit(rated)
    model.save(str(tmp_path / "fitted"))
    loaded = PipelineModel.load(str(tmp_path / "fitted"))
    assert rows_of(loaded.transform(rated)) == rows_of(model.transform(rated))


# pyspark's searches leave their pools of threads to the garbage collector
POOLS = pytest.mark.filterwarnings("ignore:unclosed running multiprocessing pool:ResourceWarning")


@pytest.mark.slow
@POOLS
def test_a_split_chooses_what_predicts_best(
    rated: DataFrame, nothing_left: Callable[[], AbstractContextManager[None]]
) -> None:
    ranker = PerUserRanker(**SMALL)
    rmse = RegressionEvaluator(labelCol="rating", predictionCol="prediction")
    with nothing_left():
        model = TrainValidationSplit(
            estimator=ranker, estimatorParamMaps=grid(ranker), evaluator=rmse, seed=1
        ).fit(rated)
        assert model.validationMetrics[0] < model.validationMetrics[1]
        assert model.bestModel.trained.config.train.learners[0].params == {"C": 1e-6}
        del model


@pytest.mark.slow
@POOLS
def test_folds_choose_what_predicts_best(rated: DataFrame) -> None:
    ranker = PerUserRanker(**SMALL)
    model = CrossValidator(
        estimator=ranker, estimatorParamMaps=grid(ranker), numFolds=2, seed=1,
        evaluator=PerUserEvaluator(metricName="msd"),
    ).fit(rated)  # fmt: skip
    assert model.avgMetrics[0] < model.avgMetrics[1]
    assert model.transform(rated).where("prediction is null").isEmpty()
    gc.collect()


def grid(ranker: PerUserRanker) -> list[Any]:
    """Return a grid of two points: one stays at the prior, one fits the noise of the ratings."""
    points = [{"C": 1e-6}, {"C": 1e6}]
    return ParamGridBuilder().addGrid(ranker.learnerParams, points).build()
