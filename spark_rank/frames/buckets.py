"""Brings the blocks and models of the same users into one task, for everything that scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.session.workers import end_quietly, settle
from spark_rank.tables.contracts import ENSEMBLE_MODELS

_KINDS = {column.name: column.type for column in ENSEMBLE_MODELS.columns}
# a function of the blocks and the models of one bucket, each in any order
Work = Callable[[pa.Table, pa.Table], Iterable[pa.RecordBatch]]


def with_models(
    blocks: DataFrame, models: DataFrame, work: Work, schema: pa.Schema, ddl: str, tasks: int
) -> DataFrame:
    """Return the rows that `work` returns for the blocks and models of every bucket.

    Both frames have a column ``bucket`` and are shuffled by it, once each. `work` returns batches
    of `schema`; `ddl` is the same schema for Spark. If one frame has no rows of a bucket, `work`
    gets an empty table for it. The number of tasks is explicit, so adaptive execution keeps it.
    """
    sides = [frame.repartition(tasks, "bucket").groupBy("bucket") for frame in (blocks, models)]
    function = partial(_bucket, work=work, schema=schema)
    return sides[0].cogroup(sides[1]).applyInArrow(function, ddl)


def in_buckets(buckets: Sequence[int]) -> Column:
    """Return whether a row is in one of these buckets."""
    bucket, first, last = F.col("bucket"), min(buckets), max(buckets)
    # Spark takes longer to parse a list of a hundred thousand numbers than to read their blocks
    if len(set(buckets)) == last - first + 1:
        return bucket.between(first, last)
    return bucket.isin(*buckets)


def model_columns(models: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return some columns of models; missing columns, those of ensembles, are null."""
    existing = set(models.columns)
    return models.select(*[
        F.col(name) if name in existing else F.lit(None).cast(_KINDS[name]).alias(name)
        for name in columns
    ])  # fmt: skip


def _bucket(blocks: pa.Table, models: pa.Table, *, work: Work, schema: pa.Schema) -> pa.Table:
    end_quietly()
    rows = pa.Table.from_batches(list(work(blocks, models)), schema)
    settle()
    return rows
