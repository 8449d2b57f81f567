"""Training and scoring as pandas UDFs: the same values as the stages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pyspark.sql import functions as F

from spark_rank.config import load_config
from spark_rank.frames.train import train
from spark_rank.frames.udfs import SCORED_BY, TRAINED_FROM, score_udf, train_udf
from spark_rank.stages.feature_tables import distribute_files
from spark_rank.stages.models import all_models
from spark_rank.stages.training import learn_job, specs_of
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEMS
from spark_rank.users.learning import LearnJob
from tests.predicted import predicted

LEARNERS = "[{name: linear, params: {C: 0.1}}, {learner: prank}, {learner: rankboost}]"


@pytest.fixture(scope="module")
def job(finished: Run) -> LearnJob:
    settings = load_config(None, [f"train.learners={LEARNERS}"]).train
    return learn_job(settings, specs_of(settings), finished.spark, finished)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_udf_trains_what_the_stage_trains(finished: Run, job: LearnJob, number: int) -> None:
    one = replace(job, specs=(job.specs[number],))
    blocks = finished.read(BLOCKS)
    as_struct = blocks.select(train_udf(one)(*TRAINED_FROM).alias("model")).select("model.*")
    by_udf, by_map = as_struct.toArrow(), train(blocks, one).toArrow()
    assert by_udf.num_rows == by_map.num_rows > 0
    assert by_udf.sort_by("user_id").to_pylist() == by_map.sort_by("user_id").to_pylist()


def test_a_udf_learns_one_learner(job: LearnJob) -> None:
    with pytest.raises(ValueError, match="one learner, not 3"):
        train_udf(job)


def test_a_udf_scores_what_the_stages_score(finished: Run) -> None:
    files = distribute_files(finished.spark, finished)
    models = all_models(finished)
    filled = [name for name in SCORED_BY if name in models.columns]
    models = models.withColumn("model", F.struct(*filled))
    blocks = finished.read(BLOCKS).select("user_id", F.explode("items").alias("item"))
    pairs = models.select("user_id", "learner", "model").join(blocks, "user_id")
    scored = pairs.join(finished.read(ITEMS), "item").select(
        "user_id", "learner", "item_id", score_udf(files)("model", "item").alias("score")
    )
    found = {(r["user_id"], r["learner"], r["item_id"]): r["score"] for r in scored.collect()}
    compared = 0
    for (user, learner), own in predicted(finished).items():
        udf = [found[user, learner, item] for item in own.items]
        np.testing.assert_allclose(udf, own.scores, rtol=1e-6)
        compared += len(udf)
    assert compared > 1000
