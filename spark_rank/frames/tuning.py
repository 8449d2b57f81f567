"""Measures the points of grids on a sample of users, on training ratings that are held back."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.frames.isolation import isolated_when_retried
from spark_rank.frames.train import BLOCK_COLUMNS
from spark_rank.session.crashes import isolating_on_crash
from spark_rank.session.workers import by_workers
from spark_rank.users.learning import LearnJob
from spark_rank.users.selection import MIN_RATINGS
from spark_rank.users.tuning import ERRORS_DDL, error_batches


def tuning_sample(blocks: DataFrame, users: int, min_ratings: int, seed: int) -> pa.Table:
    """Return a sample of users with enough ratings, those of least hash, as column ``user``."""
    eligible = blocks.where(F.col("n_train") >= least_ratings(min_ratings))
    return eligible.orderBy(*sample_order(seed)).limit(users).select("user").toArrow()


def sample_order(seed: int) -> tuple[Column, Column]:
    """Return the columns that order users for the sample; the first users are taken."""
    return F.xxhash64(F.lit(seed), F.lit("tune"), "user_id"), F.col("user_id")


def least_ratings(min_ratings: int) -> int:
    """Return the least number of training ratings of a sampled user: two are held back."""
    return max(min_ratings + 2, MIN_RATINGS)


def sample_errors(blocks: DataFrame, users: DataFrame, job: LearnJob, tasks: int) -> pa.Table:
    """Return the errors of all points of the grids on the held-back ratings of `users`.

    The feature files of `job` must be made without the held-back ratings.
    """
    sample = blocks.join(F.broadcast(users), "user", "left_semi").select(*BLOCK_COLUMNS)
    sample = sample.repartition(tasks, "user")

    def errors(isolated: bool) -> pa.Table:
        work = isolated_when_retried(error_batches, replace(job, isolated=isolated))
        return by_workers(sample, work, ERRORS_DDL).toArrow()

    return isolating_on_crash(errors, "tune", "the sample")
