"""Pieces: parsed ratings in packed rows, for the task that merges one share of users.

A piece is one row with hundreds of thousands of ratings: codes, ratings and times as packed
columns, and the ids of the codes. So Spark writes, shuffles and reads a thousandth of the rows.
Every rating is in a chunk of at most `CHUNK_ROWS` rows, and every chunk is cut into pieces by the
shares of its users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark import TaskContext

from spark_rank.compiled import njit
from spark_rank.data.packing import pack_integers, pack_ratings, pack_strings
from spark_rank.data.shares import Shares
from spark_rank.tables.contract import Column, arrow_schema

IntArray = NDArray[np.int64]

# a chunk takes about 400 MB while it is cut; with long ids it ends earlier
CHUNK_ROWS = 3_000_000
_CHUNK_BYTES = 2**28
_JUDGED = 1
# an unknown time: a day before the first valid one
NO_TIME = -2_208_988_800 - 86_400

PIECE_COLUMNS = (
    Column("chunk", "bigint", "number of the piece's chunk; null for a tally"),
    Column("share", "int", "share that the piece's users belong to"),
    Column("users", "binary", "user ids, packed"),
    Column("items", "array<string>", "item ids"),
    Column("user_codes", "binary", "positions in `users`, packed"),
    Column("item_codes", "binary", "positions in `items`, packed"),
    Column("ratings", "binary", "ratings, packed"),
    Column("times", "binary", "seconds since 1970 or `NO_TIME`, packed"),
    Column("parts", "binary", "parts of a given split, a byte each; null without one"),
    Column("reason", "string", "tally: why rows cannot be used; null for valid rows"),
    Column("rows", "bigint", "number of rows"),
)
PIECE_SCHEMA = arrow_schema(PIECE_COLUMNS)


@dataclass(frozen=True)
class Chunk:
    """Ratings as codes: `user_codes` and `item_codes` are positions in distinct ids.

    `parts` are those of a given split.
    """

    users: pa.StringArray
    items: pa.StringArray
    user_codes: NDArray[np.integer]
    item_codes: NDArray[np.integer]
    ratings: NDArray[np.float64]
    times: IntArray
    parts: NDArray[np.int8] | None = None


def cut_chunk(chunk: Chunk, number: int, shares: Shares) -> Iterator[pa.RecordBatch]:
    """Yield the chunk's pieces, a batch each. O(rows + shares · items)."""
    share_of_user = shares.of(chunk.users)
    by_share, user_ends = _grouped(share_of_user, shares.count)
    place = np.empty(len(by_share), np.int64)
    place[by_share] = np.arange(len(by_share))
    rows, row_ends = _grouped(share_of_user[chunk.user_codes], shares.count)
    for share in np.flatnonzero(np.diff(row_ends)):
        chosen = rows[row_ends[share] : row_ends[share + 1]]
        first, last = user_ends[share], user_ends[share + 1]
        item_codes, items = _compact(chunk.item_codes[chosen], len(chunk.items))
        yield _row(
            chunk=number,
            share=int(share),
            users=pack_strings(chunk.users.take(pa.array(by_share[first:last]))),
            items=chunk.items.take(pa.array(items)),
            user_codes=pack_integers(place[chunk.user_codes[chosen]] - first),
            item_codes=pack_integers(item_codes),
            ratings=pack_ratings(chunk.ratings[chosen]),
            times=pack_integers(chunk.times[chosen]),
            parts=None if chunk.parts is None else chunk.parts[chosen].tobytes(),
            rows=len(chosen),
        )


def tally_rows(tally: Counter[str | None]) -> Iterator[pa.RecordBatch]:
    """Yield the number of rows for each reason; None is the reason of valid rows."""
    for reason, rows in tally.items():
        yield _row(reason=reason, rows=rows)


def chunk_number(job: int, of_task: int) -> int:
    """Return a unique number of a chunk; `job` is the number of the job that makes it."""
    context = TaskContext.get()
    return job << 60 | (context.partitionId() if context else 0) << 30 | of_task


def cut_rows(
    batches: Iterator[pa.RecordBatch], shares: Shares, chunk_rows: int = CHUNK_ROWS
) -> Iterator[pa.RecordBatch]:
    """Turn ``user_id, item_id, rating, timestamp, reason[, part]`` into pieces of the valid rows.

    `DataFrame.mapInArrow` calls it. Rows with a reason are only counted.
    """
    tally: Counter[str | None] = Counter()
    waiting: list[pa.RecordBatch] = []
    rows = held = made = 0
    for batch in batches:
        for entry in pc.value_counts(batch.column("reason")).to_pylist():
            tally[entry["values"]] += entry["counts"]
        good = batch.filter(pc.is_null(batch.column("reason")))
        waiting.append(good)
        rows, held = rows + good.num_rows, held + good.nbytes
        if rows >= chunk_rows or held >= _CHUNK_BYTES:
            yield from cut_chunk(_encoded(waiting), chunk_number(_JUDGED, made), shares)
            waiting, rows, held, made = [], 0, 0, made + 1
    if rows:
        yield from cut_chunk(_encoded(waiting), chunk_number(_JUDGED, made), shares)
    yield from tally_rows(tally)


@njit(cache=True)
def _grouped(groups: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Return the positions sorted by group (a stable counting sort), and the groups' ends."""
    ends = np.zeros(size + 1, np.int64)
    for group in groups:
        ends[group + 1] += 1
    ends = np.cumsum(ends)
    following = ends.copy()
    places = np.empty(len(groups), np.int64)
    for place in range(len(groups)):
        places[following[groups[place]]] = place
        following[groups[place]] += 1
    return places, ends


def _encoded(batches: list[pa.RecordBatch]) -> Chunk:
    table = pa.Table.from_batches(batches)
    users, items = (_dictionary(table.column(name)) for name in ("user_id", "item_id"))
    times = table.column("timestamp").combine_chunks().fill_null(NO_TIME)
    return Chunk(
        users.dictionary,
        items.dictionary,
        users.indices.to_numpy(),
        items.indices.to_numpy(),
        table.column("rating").to_numpy(),
        times.to_numpy(),
        table.column("part").to_numpy().astype(np.int8) if "part" in table.column_names else None,
    )


def _dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    return column.dictionary_encode().unify_dictionaries().combine_chunks()


def _compact(codes: NDArray[np.integer], size: int) -> tuple[IntArray, IntArray]:
    """Return dense codes, and the old code of each. O(codes + size)."""
    present = np.zeros(size, bool)
    present[codes] = True
    return (np.cumsum(present) - 1)[codes], np.flatnonzero(present)


def _row(**values: object) -> pa.RecordBatch:
    columns = []
    for field in PIECE_SCHEMA:
        value = values.get(field.name)
        if isinstance(value, pa.Array):
            ends = pa.array([0, len(value)], pa.int32())
            columns.append(pa.ListArray.from_arrays(ends, value, type=field.type))
        else:
            columns.append(pa.array([value], field.type))
    return pa.RecordBatch.from_arrays(columns, schema=PIECE_SCHEMA)
