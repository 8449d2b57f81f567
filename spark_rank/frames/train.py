"""Trains one model per user and learner."""

from __future__ import annotations

from pyspark.sql import DataFrame

from spark_rank.frames.isolation import isolated_when_retried
from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import ddl
from spark_rank.tables.contracts import MODELS
from spark_rank.users.learning import LearnJob, learn_batches
from spark_rank.users.problems import WEIGHTS

# the columns of a block that are read
BLOCK_COLUMNS = ("user", "user_id", "items", "ratings", "n_train", "bucket")


def train(blocks: DataFrame, job: LearnJob) -> DataFrame:
    """Return the rows of the table `models`, learned from the training parts of `blocks`.

    A column `weights` (`spark_rank.frames.weights`), if there is one, weights the ratings.
    """
    learn = isolated_when_retried(learn_batches, job)
    weights = [WEIGHTS] if WEIGHTS in blocks.columns else []
    return by_workers(blocks.select(*BLOCK_COLUMNS, *weights), learn, ddl(MODELS.columns))
