"""Isolates users in child processes when Spark retries a task: one of them may have crashed it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa

from spark_rank.session.workers import Work, is_retried
from spark_rank.users.learning import LearnJob

Learn = Callable[..., Iterator[pa.RecordBatch]]


def isolated_when_retried(learn: Learn, job: LearnJob) -> Work:
    """Return a function for Spark's workers that runs `learn`, isolated if the task is a retry."""
    return partial(_learned, learn=learn, job=job)


def _learned(
    batches: Iterator[pa.RecordBatch], learn: Learn, job: LearnJob
) -> Iterator[pa.RecordBatch]:
    return learn(batches, job=replace(job, isolated=job.isolated or is_retried()))
