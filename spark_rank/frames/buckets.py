"""Brings the blocks and models of the same users into one task, for everything that scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.session.workers import end_quietly, settle
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import ENSEMBLE_MODELS

_MODEL_SCHEMA = arrow_schema(ENSEMBLE_MODELS.columns)
# a function of the blocks and the models of one bucket, each in any order
Work = Callable[[pa.Table, pa.Table], Iterable[pa.RecordBatch]]


def with_models(
    blocks: DataFrame,
    models: DataFrame,
    columns: Sequence[str],
    work: Work,
    schema: pa.Schema,
    ddl: str,
    tasks: int,
) -> DataFrame:
    """Return the rows that `work` returns for the blocks and models of every bucket.

    Both frames have a column ``bucket`` and are shuffled by it, once each. `work` gets `columns` of
    the models; a column that the frame lacks is null, and costs Spark nothing. `work` returns
    batches of `schema`; `ddl` is the same schema for Spark. If one frame has no rows of a bucket,
    `work` gets an empty table for it. The number of tasks is explicit, so adaptive execution keeps
    it.
    """
    needed = models.select(*[name for name in columns if name in set(models.columns)])
    sides = [frame.repartition(tasks, "bucket").groupBy("bucket") for frame in (blocks, needed)]
    function = partial(_bucket, columns=tuple(columns), work=work, schema=schema)
    return sides[0].cogroup(sides[1]).applyInArrow(function, ddl)


def held_out_part(blocks: DataFrame) -> DataFrame:
    """Return blocks with their held-out ratings alone, which is all that measuring reads.

    Ratings that were learned from would be half of what is shuffled.
    """
    first, size = F.col("n_train") + 1, F.size("items") - F.col("n_train")
    lists = [F.slice(name, first, size).alias(name) for name in ("items", "ratings")]
    return blocks.select("user", "user_id", *lists, F.lit(0).alias("n_train"), "bucket")


def in_buckets(buckets: Sequence[int]) -> Column:
    """Return whether a row is in one of these buckets."""
    bucket, first, last = F.col("bucket"), min(buckets), max(buckets)
    # Spark takes longer to parse a list of a hundred thousand numbers than to read their blocks
    if len(set(buckets)) == last - first + 1:
        return bucket.between(first, last)
    return bucket.isin(*buckets)


def _bucket(
    blocks: pa.Table, models: pa.Table, *, columns: Sequence[str], work: Work, schema: pa.Schema
) -> pa.Table:
    end_quietly()
    rows = pa.Table.from_batches(list(work(blocks, _with_columns(models, columns))), schema)
    settle()
    return rows


def _with_columns(models: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the models with all of these columns, null where the table lacks one."""
    existing = set(models.column_names)
    return pa.table({
        name: models.column(name) if name in existing
        else pa.nulls(len(models), _MODEL_SCHEMA.field(name).type)
        for name in columns
    })  # fmt: skip
