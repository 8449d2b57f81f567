"""Pieces: parsed ratings on their way to the task that merges those of one share of users.

A piece is one row with hundreds of thousands of ratings: codes, ratings and times as packed
columns, and the ids that the codes stand for. What Spark writes, shuffles and reads is thereby a
thousandth of the rows. Every rating is in a chunk, of `CHUNK_ROWS` rows at most, and every chunk
is cut into pieces by the share that its users belong to.
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

# a chunk takes some 400 MB while it is cut; long ids end it before
CHUNK_ROWS = 3_000_000
_CHUNK_BYTES = 2**28
_JUDGED = 1
# stands for a time that is not known: a day before the first that may be
NO_TIME = -2_208_988_800 - 86_400

PIECE_COLUMNS = (
    Column("chunk", "bigint", "which chunk the piece was cut from; null for a tally"),
    Column("share", "int", "share of the users that its own belong to"),
    Column("users", "binary", "user ids, packed"),
    Column("items", "array<string>", "item ids"),
    Column("user_codes", "binary", "places in `users`, packed"),
    Column("item_codes", "binary", "places in `items`, packed"),
    Column("ratings", "binary", "ratings, packed"),
    Column("times", "binary", "seconds since 1970 or `NO_TIME`, packed"),
    Column("reason", "string", "tally: why rows cannot be used; null: good ones"),
    Column("rows", "bigint", "number of rows"),
)
PIECE_SCHEMA = arrow_schema(PIECE_COLUMNS)


@dataclass(frozen=True)
class Chunk:
    """Ratings as codes: what `user_codes` and `item_codes` point at are distinct ids."""

    users: pa.StringArray
    items: pa.StringArray
    user_codes: NDArray[np.integer]
    item_codes: NDArray[np.integer]
    ratings: NDArray[np.float64]
    times: IntArray


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
            rows=len(chosen),
        )


def tally_rows(tally: Counter[str | None]) -> Iterator[pa.RecordBatch]:
    """Yield how many rows have which reason, None for the good ones."""
    for reason, rows in tally.items():
        yield _row(reason=reason, rows=rows)


def chunk_number(job: int, of_task: int) -> int:
    """Return a number that no other chunk has; `job` tells apart the jobs that make chunks."""
    context = TaskContext.get()
    return job << 60 | (context.partitionId() if context else 0) << 30 | of_task


def cut_rows(
    batches: Iterator[pa.RecordBatch], shares: Shares, chunk_rows: int = CHUNK_ROWS
) -> Iterator[pa.RecordBatch]:
    """Turn ``user_id, item_id, rating, timestamp, reason`` into pieces of the good rows.

    What `DataFrame.mapInArrow` calls. Rows with a reason are counted.
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
    """Return the places by group, as they come inside one, and the groups' ends: counting sort."""
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
    )


def _dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    return column.dictionary_encode().unify_dictionaries().combine_chunks()


def _compact(codes: NDArray[np.integer], size: int) -> tuple[IntArray, IntArray]:
    """Return codes below the number of different ones, and what each was. O(codes + size)."""
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
