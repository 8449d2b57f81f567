"""Spark's part in bringing models and blocks of the same users together."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.data.workers import by_workers
from spark_rank.engine.bucket_pieces import PIECES_DDL, Selection, model_pieces
from spark_rank.engine.worker_files import CONTENT


def brought_together(models: DataFrame, blocks: DataFrame, selection: Selection) -> DataFrame:
    """Return what `bucket_pieces.by_bucket` takes, a task per bucket as in training.

    Takes whole files of models, and of blocks with their buckets.
    """
    buckets = selection.buckets
    cut = partial(model_pieces, selection=selection)
    pieces = by_workers(models.select(CONTENT), cut, PIECES_DDL)
    files = blocks.where(F.col("bucket").isin(*buckets)).select("bucket", "path", CONTENT)
    place = F.col("bucket") - min(buckets)
    tasks = max(buckets) - min(buckets) + 1
    return pieces.unionByName(files).repartitionById(tasks, place)
