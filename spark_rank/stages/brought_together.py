"""Spark's part in bringing models and blocks of the same users together."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.session.workers import by_workers
from spark_rank.store.worker_files import CONTENT
from spark_rank.users.bucket_pieces import PIECES_DDL, Selection, model_pieces


def brought_together(models: DataFrame, blocks: DataFrame, selection: Selection) -> DataFrame:
    """Return what `bucket_pieces.by_bucket` takes, a task per bucket as in training.

    Takes whole files of models, and of blocks with their buckets.
    """
    buckets = selection.buckets
    first, tasks = min(buckets), max(buckets) - min(buckets) + 1
    bucket = F.col("bucket")
    # a list of a hundred thousand numbers takes Spark longer to read than all their blocks
    all_between = len(set(buckets)) == tasks
    wanted = bucket.between(first, max(buckets)) if all_between else bucket.isin(*buckets)
    cut = partial(model_pieces, selection=selection)
    pieces = by_workers(models.select(CONTENT), cut, PIECES_DDL)
    files = blocks.where(wanted).select("bucket", "path", CONTENT)
    return pieces.unionByName(files).repartitionById(tasks, bucket - first)
