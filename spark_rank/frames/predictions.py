"""Scores held-out ratings: a row per user, learner and item."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from spark_rank.frames.buckets import held_out_part, with_models
from spark_rank.tables.contract import ddl
from spark_rank.tables.contracts import PREDICTIONS
from spark_rank.users.evaluating import (
    MODEL_COLUMNS,
    PREDICTION_SCHEMA,
    PredictJob,
    predict_bucket,
)


def predictions(blocks: DataFrame, models: DataFrame, job: PredictJob, tasks: int) -> DataFrame:
    """Return the rows of the table `predictions`.

    `blocks` and `models` have the columns of the tables of these names, and the same buckets.
    """
    return with_models(
        held_out_part(blocks),
        models,
        MODEL_COLUMNS,
        partial(predict_bucket, job=job),
        PREDICTION_SCHEMA,
        ddl(PREDICTIONS.columns),
        tasks,
    )
