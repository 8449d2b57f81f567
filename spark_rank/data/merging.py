"""Merges the pieces of a share of users into its ratings: numbered, sorted, without duplicates.

A Spark worker gets the rows of some shares: the pieces, the numbers of their users and, unless
there is a dictionary, the numbers of each piece's items.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.data.duplicates import Ratings, joined, resolve
from spark_rank.data.packing import (
    pack_integers,
    pack_strings,
    unpack_integers,
    unpack_ratings,
    unpack_strings,
)
from spark_rank.data.pieces import NO_TIME
from spark_rank.data.shares import Shares
from spark_rank.session.sharing import Shared
from spark_rank.tables.contract import Column, arrow_schema

IntArray = NDArray[np.int64]

_BATCH = 65_536

NUMBER_COLUMNS = (
    Column("share", "int", "share of the users"),
    Column("users", "binary", "user ids, packed"),
    Column("user_numbers", "binary", "their dense numbers, packed"),
)
ID_COLUMNS = (Column("user_id", "string", "id as in the input"),)
RATING_COLUMNS = (
    Column("user", "int", "dense user number"),
    Column("item", "int", "dense item number"),
    Column("rating", "double", "rating"),
    Column("timestamp", "bigint", "seconds since 1970; null where unknown"),
)
RATING_SCHEMA = arrow_schema(RATING_COLUMNS)
# the same ratings of a given split
PARTED_COLUMNS = (*RATING_COLUMNS, Column("part", "int", "part of a given split"))


class ItemNumbers(NamedTuple):
    """The dictionary of the items: ids and their numbers."""

    ids: pa.StringArray
    numbers: IntArray

    def of(self, ids: pa.StringArray) -> IntArray:
        """Return the numbers of known ids."""
        places = pc.index_in(ids, value_set=self.ids)
        return self.numbers[places.to_numpy(zero_copy_only=False)]


@dataclass
class Share:
    """The rows of a share that have been read so far."""

    pieces: list[dict[str, Any]] = field(default_factory=list)
    users: list[pa.StringArray] = field(default_factory=list)
    user_numbers: list[IntArray] = field(default_factory=list)
    items: dict[int, IntArray] = field(default_factory=dict)

    def add(self, row: dict[str, Any]) -> None:
        """Add a row: a piece, numbers of users, or numbers of a piece's items."""
        if row["user_numbers"] is not None:
            self.users.append(unpack_strings(row["users"]))
            self.user_numbers.append(unpack_integers(row["user_numbers"]))
        elif row.get("item_numbers") is not None:
            self.items[row["chunk"]] = row["item_numbers"].to_numpy().astype(np.int64)
        else:
            self.pieces.append(row)

    def look_up(self, dictionary: ItemNumbers) -> None:
        """Find the item numbers of all pieces in one lookup: each lookup hashes all ids anew."""
        numbers = dictionary.of(pa.concat_arrays([piece["items"] for piece in self.pieces]))
        first = 0
        for piece in self.pieces:
            self.items[piece["chunk"]] = numbers[first : first + len(piece["items"])]
            first += len(piece["items"])

    def ratings(self) -> Ratings:
        """Return the ratings of all pieces with dense numbers, in any order."""
        user_ids, numbers = pa.concat_arrays(self.users), np.concatenate(self.user_numbers)
        ratings = []
        for piece in self.pieces:
            places = pc.index_in(unpack_strings(piece["users"]), value_set=user_ids)
            users = numbers[places.to_numpy(zero_copy_only=False)]
            items = self.items[piece["chunk"]]
            given = piece.get("parts")
            ratings.append(
                Ratings(
                    users[unpack_integers(piece["user_codes"])],
                    items[unpack_integers(piece["item_codes"])],
                    unpack_ratings(piece["ratings"]),
                    unpack_integers(piece["times"]),
                    None if given is None else np.frombuffer(given, np.int8),
                )
            )
        return joined(ratings)


def merge_shares(
    batches: Iterator[pa.RecordBatch],
    policy: str,
    repeated: bool,
    dictionary: Shared[ItemNumbers] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the ratings that count or, with `repeated`, the duplicates that do not.

    Item numbers are looked up in the `dictionary`, or come as one row per piece.
    `DataFrame.mapInArrow` calls it; a task has all rows of some shares, share by share, and holds
    one share at a time. O(n log n) for n ratings of a share, about 100 bytes each.
    """
    share, number = Share(), None
    for batch in batches:
        names = batch.schema.names
        for place in range(batch.num_rows):
            row = {name: _value(batch.column(i), place) for i, name in enumerate(names)}
            if row["share"] != number:
                yield from _merged(share, policy, repeated, dictionary)
                share, number = Share(), row["share"]
            share.add(row)
    yield from _merged(share, policy, repeated, dictionary)


def _merged(
    share: Share, policy: str, repeated: bool, dictionary: Shared[ItemNumbers] | None
) -> Iterator[pa.RecordBatch]:
    # users of an earlier run's dictionary may have no ratings
    if share.pieces:
        if dictionary is not None:
            share.look_up(dictionary.value)
        kept, others = resolve(share.ratings(), policy)
        yield from _batches(others if repeated else kept)


def distinct_users(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the distinct ids in the packed column ``users`` of a task.

    `DataFrame.mapInArrow` calls it.
    """
    distinct = pa.array([], pa.string())
    for batch in batches:
        lists = [unpack_strings(value.as_buffer()) for value in batch.column("users")]
        distinct = pc.unique(pa.concat_arrays([distinct, *lists]))
    yield from pa.table([distinct], names=["user_id"]).to_batches(_BATCH)


def pack_numbers(batches: Iterator[pa.RecordBatch], shares: Shares) -> Iterator[pa.RecordBatch]:
    """Turn rows ``user_id, user`` into a packed row per share and batch.

    `DataFrame.mapInArrow` calls it.
    """
    for batch in batches:
        ids = batch.column("user_id")
        numbers = batch.column("user").to_numpy().astype(np.int64)
        share = shares.of(ids)
        order = np.argsort(share, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(share, minlength=shares.count))])
        present = np.flatnonzero(np.diff(ends))
        parts = [order[ends[s] : ends[s + 1]] for s in present]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(present, pa.int32()),
                pa.array([pack_strings(ids.take(pa.array(part))) for part in parts], pa.binary()),
                pa.array([pack_integers(numbers[part]) for part in parts], pa.binary()),
            ],
            schema=arrow_schema(NUMBER_COLUMNS),
        )


def unpacked_ratings(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield ``rating`` from packed ``ratings``; `DataFrame.mapInArrow` calls it."""
    for batch in batches:
        for packed in batch.column("ratings"):
            values = pa.array(unpack_ratings(packed.as_buffer()))
            yield pa.RecordBatch.from_arrays([values], names=["rating"])


def _value(column: pa.Array, place: int) -> Any:
    """Return a cell without a copy: bytes as a buffer, a list as an Arrow array."""
    cell = column[place]
    if not cell.is_valid:
        return None
    if pa.types.is_binary(column.type):
        return cell.as_buffer()
    if pa.types.is_list(column.type):
        return cell.values
    return cell.as_py()


def _batches(ratings: Ratings) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(ratings.users), _BATCH):
        part = ratings.take(np.arange(start, min(start + _BATCH, len(ratings.users))))
        columns = [
            pa.array(part.users.astype(np.int32)),
            pa.array(part.items.astype(np.int32)),
            pa.array(part.ratings),
            pa.array(part.times, mask=part.times == NO_TIME),
        ]
        if part.parts is None:
            yield pa.RecordBatch.from_arrays(columns, schema=RATING_SCHEMA)
        else:
            columns.append(pa.array(part.parts.astype(np.int32)))
            yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema(PARTED_COLUMNS))
