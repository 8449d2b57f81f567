"""predictions: every held-out rating beside the scores of all models."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.frames.predictions import predictions as predicted
from spark_rank.stages.feature_tables import distribute_files
from spark_rank.stages.models import all_models, batches_of_models, ensemble_input
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.stages.training import rank_scale, tasks_by_bucket
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, PREDICTIONS
from spark_rank.users.evaluating import PredictJob


def predictions(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Score the held-out items, and write a row per user, learner and item."""
    job = PredictJob(distribute_files(spark, run), rank_scale(run))
    scored = predicted(run.read(BLOCKS), all_models(run), job, tasks_by_bucket(run))
    with batches_of_models(run):
        rows = run.write(PREDICTIONS, scored)
    return StageResult(f"{rows:,} predictions", {PREDICTIONS.table: rows})


STAGE = Stage(
    name="predictions",
    run=predictions,
    settings=lambda config: {},  # whether the pipeline runs the stage decides nothing
    needs=lambda config: ("train", "prepare", "features", "ingest"),
    inputs=lambda config, run: ensemble_input(run),
    follows_inputs=True,
)
