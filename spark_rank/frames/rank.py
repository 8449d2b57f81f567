"""Ranks each user's held-out items by a preference function."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.frames.buckets import held_out_part, with_models
from spark_rank.tables.contract import arrow_schema, ddl
from spark_rank.tables.contracts import RANKINGS
from spark_rank.users.ranking import MODEL_COLUMNS, RankJob, rank_bucket


def rank(blocks: DataFrame, models: DataFrame, job: RankJob, tasks: int) -> DataFrame:
    """Return the rows of the table `rankings`.

    `blocks` and `models` have the columns of the tables of these names, and the same buckets.
    """
    return with_models(
        held_out_part(blocks),
        models.where(F.col("learner").isin(*job.learners)),
        MODEL_COLUMNS,
        partial(rank_bucket, job=job),
        arrow_schema(RANKINGS.columns),
        ddl(RANKINGS.columns),
        tasks,
    )
