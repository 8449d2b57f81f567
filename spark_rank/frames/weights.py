"""Weights of ratings: how much each one counts when its user's model is learned."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.errors import InputDataError
from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import ddl
from spark_rank.tables.contracts import BLOCKS
from spark_rank.users.batches import ragged
from spark_rank.users.problems import WEIGHTS
from spark_rank.wording import count_of

# the column of rows of ratings
WEIGHT = "weight"
_PAIRS = "_weighted"


def check_weights(rows: DataFrame) -> None:
    """Raise `InputDataError` unless every row has a weight above 0, and no pair has two rows."""
    weight = F.col(WEIGHT)
    # NaN is greater than all numbers
    sound = weight.isNotNull() & (weight > 0.0) & (weight < float("inf"))
    rows_by_pair = rows.groupBy("user_id", "item_id").agg(
        F.count("*").alias("n"), F.count_if(~sound).alias("bad")
    )
    pairs, n_rows, bad = rows_by_pair.agg(F.count("*"), F.sum("n"), F.sum("bad")).head() or (0,) * 3
    if bad:
        raise InputDataError(
            f"{bad:,} of {count_of(n_rows, 'row')} have a weight that is no number above 0: leave "
            "those rows out"
        )
    if n_rows > pairs:
        raise InputDataError(
            "with weights, every pair of user and item can have one row only, but "
            f"{count_of(n_rows - pairs, 'row')} repeat a pair: add their weights up first"
        )


def with_weights(
    blocks: DataFrame, rows: DataFrame, users: DataFrame, items: DataFrame
) -> DataFrame:
    """Return the blocks with a column `weights` in the order of their items.

    `rows` has ``user_id, item_id, weight`` for every rating of the blocks; `users` and `items`
    are the dictionaries that the blocks are numbered by.
    """
    pairs = F.array_sort(F.collect_list(F.struct("item", WEIGHT))).alias(_PAIRS)
    numbered = rows.join(users.select("user_id", "user"), "user_id").join(
        items.select("item_id", "item"), "item_id"
    )
    of_users = numbered.groupBy("user").agg(pairs)
    kinds = {column.name: column for column in BLOCKS.columns}
    columns = [name for name in blocks.columns if name in kinds]
    schema = f"{ddl(tuple(kinds[name] for name in columns))}, {WEIGHTS} array<double>"
    joined = blocks.join(of_users, "user").select(*columns, _PAIRS)
    return by_workers(joined, partial(in_order_of_items, columns=tuple(columns)), schema)


def in_order_of_items(
    batches: Iterator[pa.RecordBatch], columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the blocks with the weights that pairs of items and weights, in order, tell."""
    for batch in batches:
        items, ends = ragged(batch.column("items"))
        pairs = batch.column(_PAIRS)
        given_ends = np.concatenate([[0], np.cumsum(pairs.value_lengths().to_numpy())])
        flat = pairs.flatten()
        numbers, values = (flat.field(n).to_numpy(zero_copy_only=False) for n in (0, 1))
        found = np.empty(len(items))
        for row in range(batch.num_rows):
            own = slice(ends[row], ends[row + 1])
            theirs = slice(given_ends[row], given_ends[row + 1])
            found[own] = values[theirs][np.searchsorted(numbers[theirs], items[own])]
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(found))
        arrays = [batch.column(name) for name in columns]
        yield pa.RecordBatch.from_arrays([*arrays, lists], names=[*columns, WEIGHTS])
