"""Lists every user's best and worst unseen items, and some items' best users, by one learner."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_rank.frames.buckets import with_models
from spark_rank.tables.contract import arrow_schema, ddl
from spark_rank.tables.contracts import RECOMMENDATIONS
from spark_rank.users.best_users import COLUMNS, SCHEMA, BestUsersJob, best_users_of_bucket
from spark_rank.users.joining import MODELS_SCHEMA, ScoringLearner
from spark_rank.users.recommending import RecommendJob, Shared, recommend_bucket

_BLOCK_COLUMNS = ("user", "user_id", "items", "bucket")
# users whose scores of all items are in memory at once
_USERS_AT_ONCE = 1024


def recommend(
    blocks: DataFrame,
    models: DataFrame,
    scored_by: ScoringLearner,
    job: RecommendJob,
    facts: Shared,
    tasks: int,
) -> DataFrame:
    """Return the rows of the table `recommendations`.

    `blocks` and `models` have the columns of the tables of these names, and the same buckets.
    """
    return with_models(
        blocks.select(*_BLOCK_COLUMNS),
        models.where(F.col("learner").isin(*scored_by.learners)),
        (*MODELS_SCHEMA.names, "bucket"),
        partial(recommend_bucket, scored_by=scored_by, users=_USERS_AT_ONCE, job=job, facts=facts),
        arrow_schema(RECOMMENDATIONS.columns),
        ddl(RECOMMENDATIONS.columns),
        tasks,
    )


def best_users(blocks: DataFrame, models: DataFrame, job: BestUsersJob, tasks: int) -> DataFrame:
    """Return ``item, user_id, prediction, position`` of the users with the best predictions.

    `blocks` and `models` have the columns of the tables of these names, and the same buckets;
    there is one model per user.
    """
    of_buckets = with_models(
        blocks.select(*_BLOCK_COLUMNS),
        models,
        (*MODELS_SCHEMA.names, "bucket"),
        partial(best_users_of_bucket, job=job),
        SCHEMA,
        ddl(COLUMNS),
        tasks,
    )
    order = Window.partitionBy("item").orderBy(F.col("prediction").desc(), "user_id")
    placed = of_buckets.withColumn("position", F.row_number().over(order))
    return placed.where(F.col("position") <= job.count)
