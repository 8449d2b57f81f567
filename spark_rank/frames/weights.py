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

# the column of weights in rows of ratings
WEIGHT = "weight"
_PAIRS = "_weighted"


def check_weights(rows: DataFrame) -> None:
    """Raise `InputDataError` unless every row has a weight above 0, and no pair has two rows."""
    weight = F.col(WEIGHT)
    # NaN is greater than all numbers
    is_valid = weight.isNotNull() & (weight > 0.0) & (weight < float("inf"))
    rows_by_pair = rows.groupBy("user_id", "item_id").agg(
        F.count("*").alias("n"), F.count_if(~is_valid).alias("bad")
    )
    pairs, n_rows, bad = rows_by_pair.agg(F.count("*"), F.sum("n"), F.sum("bad")).head() or (0,) * 3
    if bad:
        raise InputDataError(
            f"{bad:,} of {count_of(n_rows, 'row')} have a weight that is not a number above 0: "
            "remove those rows"
        )
    if n_rows > pairs:
        raise InputDataError(
            "with weights, every pair of user and item can have only one row, but "
            f"{count_of(n_rows - pairs, 'row')} repeat a pair: add up their weights first"
        )


def with_weights(
    blocks: DataFrame, rows: DataFrame, users: DataFrame, items: DataFrame
) -> DataFrame:
    """Return the blocks with a column `weights` in the order of their items.

    `rows` has ``user_id, item_id, weight`` for every rating of the blocks; `users` and `items`
    are the dictionaries with the numbers of the blocks.
    """
    pairs = F.array_sort(F.collect_list(F.struct("item", WEIGHT))).alias(_PAIRS)
    numbered = rows.join(users.select("user_id", "user"), "user_id").join(
        items.select("item_id", "item"), "item_id"
    )
    of_users = numbered.groupBy("user").agg(pairs)
    block_columns = {column.name: column for column in BLOCKS.columns}
    columns = [name for name in blocks.columns if name in block_columns]
    schema = f"{ddl(tuple(block_columns[name] for name in columns))}, {WEIGHTS} array<double>"
    joined = blocks.join(of_users, "user").select(*columns, _PAIRS)
    return by_workers(joined, partial(in_order_of_items, columns=tuple(columns)), schema)


def in_order_of_items(
    batches: Iterator[pa.RecordBatch], columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the blocks with a list of weights, from pairs of item and weight sorted by item."""
    for batch in batches:
        items, ends = ragged(batch.column("items"))
        pairs = batch.column(_PAIRS)
        pair_ends = np.concatenate([[0], np.cumsum(pairs.value_lengths().to_numpy())])
        flat = pairs.flatten()
        numbers, values = (flat.field(n).to_numpy(zero_copy_only=False) for n in (0, 1))
        weights = np.empty(len(items))
        for row in range(batch.num_rows):
            entries = slice(ends[row], ends[row + 1])
            of_pairs = slice(pair_ends[row], pair_ends[row + 1])
            weights[entries] = values[of_pairs][np.searchsorted(numbers[of_pairs], items[entries])]
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(weights))
        arrays = [batch.column(name) for name in columns]
        yield pa.RecordBatch.from_arrays([*arrays, lists], names=[*columns, WEIGHTS])
