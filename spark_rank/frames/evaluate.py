"""Measures models on held-out ratings: a row per user and learner, ROC curves, and lists."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.frames.buckets import held_out_part, with_models
from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import ddl
from spark_rank.tables.contracts import METRICS
from spark_rank.users.evaluating import (
    CURVE,
    MEASURED_SCHEMA,
    MODEL_COLUMNS,
    EvaluateJob,
    evaluate_bucket,
    shown_bucket,
)
from spark_rank.users.joining import MODELS_SCHEMA, ScoringLearner
from spark_rank.users.list_measuring import SUM_COLUMNS, SUM_SCHEMA, MeasureJob, measure_bucket
from spark_rank.users.recommending import Shared
from spark_rank.users.roc_sums import ROC_SUM_COLUMNS, roc_table, summed_curves
from spark_rank.users.shown_measuring import (
    USER_COLUMNS,
    USER_SCHEMA,
    ShownJob,
    shown_summary,
)
from spark_rank.users.user_groups import UserGroups

# users whose scores of all items are in memory at once
_USERS_AT_ONCE = 512


def evaluate(blocks: DataFrame, models: DataFrame, job: EvaluateJob, tasks: int) -> DataFrame:
    """Return the rows of the table `metrics` with a column `curve`, the user's ROC curve.

    `blocks` and `models` have the columns of the tables of these names, and the same buckets.
    """
    return with_models(
        held_out_part(blocks),
        models,
        MODEL_COLUMNS,
        partial(evaluate_bucket, job=job),
        MEASURED_SCHEMA,
        f"{ddl(METRICS.columns)}, {CURVE} binary",
        tasks,
    )


def shown(blocks: DataFrame, models: DataFrame, job: ShownJob, tasks: int) -> pa.Table:
    """Return the table `shown_metrics`: the metrics if held-out items had been shown at random."""
    rows = with_models(
        held_out_part(blocks),
        models,
        MODEL_COLUMNS,
        partial(shown_bucket, job=job),
        USER_SCHEMA,
        ddl(USER_COLUMNS),
        tasks,
    )
    return shown_summary(rows.toArrow())


def list_sums(
    blocks: DataFrame,
    models: DataFrame,
    scored_by: ScoringLearner,
    job: MeasureJob,
    facts: Shared,
    tasks: int,
) -> pa.Table:
    """Return the tasks' sums over the lists of one learner, for `list_table`."""
    return with_models(
        blocks.select("user", "user_id", "items", "ratings", "n_train", "bucket"),
        models.where(F.col("learner").isin(*scored_by.learners)),
        (*MODELS_SCHEMA.names, "bucket"),
        partial(measure_bucket, scored_by=scored_by, users=_USERS_AT_ONCE, job=job, facts=facts),
        SUM_SCHEMA,
        ddl(SUM_COLUMNS),
        tasks,
    ).toArrow()


def roc(measured: DataFrame, groups: UserGroups) -> pa.Table:
    """Return the mean ROC curve of every learner and group from the rows of `evaluate`."""
    columns = measured.select("learner", "user_group", CURVE)
    return roc_table(by_workers(columns, summed_curves, ddl(ROC_SUM_COLUMNS)).toArrow(), groups)
