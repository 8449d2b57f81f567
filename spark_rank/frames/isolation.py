"""A task that failed before learns its users in processes of their own: one of them may crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa

from spark_rank.session.workers import Work, is_retried
from spark_rank.users.learning import LearnJob

Learn = Callable[..., Iterator[pa.RecordBatch]]


def isolated_when_retried(learn: Learn, job: LearnJob) -> Work:
    """Return `learn` with this job as Spark's workers call it."""
    return partial(_learned, learn=learn, job=job)


def _learned(
    batches: Iterator[pa.RecordBatch], learn: Learn, job: LearnJob
) -> Iterator[pa.RecordBatch]:
    return learn(batches, job=replace(job, isolated=job.isolated or is_retried()))
