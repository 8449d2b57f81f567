"""Models and blocks of the same users in one task: the way of everything that scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.session.workers import end_quietly, settle
from spark_rank.tables.contracts import ENSEMBLE_MODELS

_KINDS = {column.name: column.type for column in ENSEMBLE_MODELS.columns}
# the blocks and the models of one bucket, each in any order
Work = Callable[[pa.Table, pa.Table], Iterable[pa.RecordBatch]]


def with_models(
    blocks: DataFrame, models: DataFrame, work: Work, schema: pa.Schema, ddl: str, tasks: int
) -> DataFrame:
    """Return what `work` makes of the blocks and models of every bucket.

    Both frames have a column ``bucket`` and are shuffled by it, once each. `work` returns batches
    of `schema`, which `ddl` says as Spark does. A bucket that one side lacks gets an empty table
    of that side. Adaptive execution keeps the number of tasks: it is asked for by name.
    """
    sides = [frame.repartition(tasks, "bucket").groupBy("bucket") for frame in (blocks, models)]
    function = partial(_bucket, work=work, schema=schema)
    return sides[0].cogroup(sides[1]).applyInArrow(function, ddl)


def in_buckets(buckets: Sequence[int]) -> Column:
    """Return whether a row is in one of these buckets."""
    bucket, first, last = F.col("bucket"), min(buckets), max(buckets)
    # a list of a hundred thousand numbers takes Spark longer to read than all their blocks
    if len(set(buckets)) == last - first + 1:
        return bucket.between(first, last)
    return bucket.isin(*buckets)


def model_columns(models: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return some columns of models; those that only ensembles have are null where they lack."""
    known = set(models.columns)
    return models.select(*[
        F.col(name) if name in known else F.lit(None).cast(_KINDS[name]).alias(name)
        for name in columns
    ])  # fmt: skip


def _bucket(blocks: pa.Table, models: pa.Table, *, work: Work, schema: pa.Schema) -> pa.Table:
    end_quietly()
    made = pa.Table.from_batches(list(work(blocks, models)), schema)
    settle()
    return made
