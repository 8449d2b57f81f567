"""Packs ratings into rows per user, and arranges packed rows into user blocks.

Packing gives a row per user, or several if the user's ratings are in several partitions. Spark then
joins the ids, and arranging turns the rows of a user into a block, in the order of
`spark_rank.data.splits`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.config import PrepareConfig
from spark_rank.data.splits import SplitKeys, presentation
from spark_rank.errors import ContractError
from spark_rank.session.sharing import Shared
from spark_rank.tables.contract import Column, arrow_schema

# large enough that few users are split into several rows, small enough for memory
_ROWS_PACKED = 1_000_000
_BYTES_ARRANGED = 4_000_000

PACKED_COLUMNS = (
    Column("user", "int", "dense user number"),
    Column("items", "binary", "items, four bytes each"),
    Column("ratings", "binary", "ratings, four bytes each"),
    Column("times", "binary", "seconds since 1970, eight bytes each; null where not needed"),
    Column("held_out", "binary", "given split: 1 if held out, a byte each; null where not needed"),
)
NAMED_COLUMNS = (
    *PACKED_COLUMNS,
    Column("user_id", "string", "id as in the input"),
    Column("user_key", "bigint", "hash of the id"),
    Column("bucket", "int", "bucket of the user"),
)
BLOCK_COLUMNS = (
    Column("user", "int", "dense user number"),
    Column("user_id", "string", "id as in the input"),
    Column("items", "array<int>", "dense item numbers in presentation order"),
    Column("ratings", "array<float>", "ratings in the same order"),
    Column("timestamps", "array<bigint>", "timestamps in the same order"),
    Column("n_train", "int", "size of the training part"),
    Column("bucket", "int", "bucket of the user"),
)
_PACKED_SCHEMA, _BLOCK_SCHEMA = arrow_schema(PACKED_COLUMNS), arrow_schema(BLOCK_COLUMNS)
# an unknown time among packed ones
_UNKNOWN = np.iinfo(np.int64).min


@dataclass(frozen=True)
class BlockJob:
    """The settings of a worker: the split, its keys, and the hash of every item's id."""

    settings: PrepareConfig
    keys: SplitKeys
    item_keys: Shared[NDArray[np.int64]]


def pack_users(
    batches: Iterator[pa.RecordBatch], rows_packed: int = _ROWS_PACKED
) -> Iterator[pa.RecordBatch]:
    """Turn ``user, item, rating[, timestamp][, held_out]`` into packed rows, one per user.

    A user whose ratings are not all in one million has several rows. `DataFrame.mapInArrow` calls
    it. Ratings that are sorted by user need no sorting.
    """
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= rows_packed:
            yield _packed(waiting)
            waiting, rows = [], 0
    if rows:
        yield _packed(waiting)


def _packed(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches)
    users = table.column("user").to_numpy()
    columns: dict[str, NDArray[Any]] = {
        "items": table.column("item").to_numpy(),
        "ratings": table.column("rating").to_numpy(),
    }
    if "timestamp" in table.column_names:
        times = table.column("timestamp").combine_chunks().fill_null(_UNKNOWN)
        columns["times"] = times.to_numpy()
    if "held_out" in table.column_names:
        columns["held_out"] = table.column("held_out").to_numpy()
    if (np.diff(users) < 0).any():
        order = np.argsort(users, kind="stable")
        users, columns = users[order], {name: own[order] for name, own in columns.items()}
    starts = np.flatnonzero(np.concatenate([[True], users[1:] != users[:-1]]))
    ends = np.append(starts, len(users))
    packed = [
        _cells(columns[field.name], ends) if field.name in columns
        else pa.nulls(len(starts), field.type)
        for field in list(_PACKED_SCHEMA)[1:]
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays([pa.array(users[starts]), *packed], schema=_PACKED_SCHEMA)


def _cells(values: NDArray[Any], ends: NDArray[np.int64]) -> pa.BinaryArray:
    data = np.ascontiguousarray(values)
    offsets = pa.py_buffer((ends * data.itemsize).astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, offsets, pa.py_buffer(data)])


def arrange_blocks(batches: Iterator[pa.RecordBatch], job: BlockJob) -> Iterator[pa.RecordBatch]:
    """Turn packed rows, sorted by user, into blocks.

    `DataFrame.mapInArrow` calls it. O(n log n) for a user's n ratings.
    """
    item_keys = job.item_keys.value
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in filter(len, batches):
        users = batch.column("user").to_numpy()
        # the last user's rows may continue in the next batch
        cut = int(np.searchsorted(users, users[-1]))
        waiting.append(batch.slice(0, cut))
        held += batch.slice(0, cut).get_total_buffer_size() if cut else 0
        if cut and held >= _BYTES_ARRANGED:
            yield _arranged(waiting, job, item_keys)
            waiting, held = [], 0
        waiting.append(batch.slice(cut))
    if waiting:
        yield _arranged(waiting, job, item_keys)


def _arranged(
    batches: list[pa.RecordBatch], job: BlockJob, item_keys: NDArray[np.int64]
) -> pa.RecordBatch:
    """Return the blocks of users whose rows are complete."""
    table = pa.concat_batches(batches)
    settings = job.settings
    users = table.column("user").to_numpy()
    starts = np.flatnonzero(np.concatenate([[True], users[1:] != users[:-1]]))
    _check_known(table.column("user_id").take(pa.array(starts)), users[starts])
    items = _flat(table.column("items"), np.dtype(np.int32))
    ratings = _flat(table.column("ratings"), np.dtype(np.float32))
    times = _flat(table.column("times"), np.dtype(np.int64))
    held_out = _flat(table.column("held_out"), np.dtype(np.bool_))
    lengths = pc.binary_length(table.column("items")).to_numpy() // 4
    sizes = np.add.reduceat(lengths, starts).astype(np.int64)
    rows = table.take(pa.array(starts))
    ends = np.concatenate([[0], np.cumsum(sizes)])
    user_keys = rows.column("user_key").to_numpy()
    order, n_train = presentation(
        ends, user_keys, item_keys[items], items, times, settings, job.keys, held_out
    )
    unknown = pa.nulls(len(sizes), pa.list_(pa.int64()))
    columns = {
        "user": rows.column("user"),
        "user_id": rows.column("user_id"),
        "items": _lists(items[order], ends),
        "ratings": _lists(ratings[order], ends),
        "timestamps": _lists(times[order], ends) if settings.timestamps else unknown,
        "n_train": pa.array(n_train, pa.int32()),
        "bucket": rows.column("bucket"),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=_BLOCK_SCHEMA)


def _check_known(ids: pa.StringArray, users: NDArray[np.int32]) -> None:
    if ids.null_count:
        unknown = users[ids.is_null().to_numpy(zero_copy_only=False)][0]
        raise ContractError(
            f"table ratings: user {unknown} is not in the table users: run ingest again"
        )


def _flat(column: pa.BinaryArray, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return all values of a packed column end to end, without a copy."""
    _, offsets, data = column.buffers()
    if data is None:
        return np.empty(0, dtype)
    ends = np.frombuffer(offsets, np.int32)
    first, last = ends[column.offset], ends[column.offset + len(column)]
    return np.frombuffer(data, np.uint8)[first:last].view(dtype)


def _lists(values: NDArray[Any], ends: NDArray[np.int64]) -> pa.ListArray:
    is_known = values != _UNKNOWN if values.dtype == np.int64 else np.ones(len(values), bool)
    return pa.ListArray.from_arrays(ends.astype(np.int32), pa.array(values, mask=~is_known))
