"""Turns pieces into numbered ratings: dictionaries, one shuffle of packed rows, and merges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.data.merging import (
    ID_COLUMNS,
    NUMBER_COLUMNS,
    PARTED_COLUMNS,
    RATING_COLUMNS,
    ItemNumbers,
    distinct_users,
    merge_shares,
    pack_numbers,
    unpacked_ratings,
)
from spark_rank.data.pieces import PIECE_COLUMNS, cut_rows
from spark_rank.data.shares import Shares, shares_for
from spark_rank.errors import InputDataError
from spark_rank.session.files import FileInfo
from spark_rank.session.sharing import Shared, share
from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import ddl

# bytes of plain text per share: a million ratings or less
_SHARE_BYTES = 16 * 2**20
PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".parquet")
_PACKED_BYTES = 4 * 2**20  # of packed text per share
# up to so many ids, a hash table takes a hundredth of the time of merging a share
_MOST_HELD = 200_000
# dictionaries of up to so many ids are sent to every task; longer ones are joined by sorting
_BROADCAST_IDS = 2_000_000


def merged_shares(files: list[FileInfo], buckets: int) -> Shares:
    """Return the shares in which ratings are merged: they depend on the input and the buckets."""
    parts = sum(
        info.size / (_PACKED_BYTES if info.path.endswith(PACKED) else _SHARE_BYTES)
        for info in files
    )
    return shares_for(buckets, max(1, round(parts)))


def cut(checked: DataFrame, shares: Shares) -> DataFrame:
    """Return the pieces and tallies of judged rows."""
    names = ["user_id", "item_id", "rating", "timestamp", "reason"]
    names += ["part"] if "part" in checked.columns else []
    return by_workers(checked.select(*names), partial(cut_rows, shares=shares), ddl(PIECE_COLUMNS))


def counts_by_reason(pieces: DataFrame) -> dict[str | None, int]:
    """Return the number of rows per reason, None for the good ones."""
    rows = pieces.where("share is not null or reason is not null").select("reason", "rows")
    # there is one row per hundred thousand ratings: a single task is faster than a shuffle
    sums = rows.coalesce(1).groupBy("reason").agg(F.sum("rows").alias("rows"))
    counts = {row["reason"]: row["rows"] for row in sums.collect()}
    if not counts:
        raise InputDataError("the input holds no rows: there is no rating to learn from")
    return counts


class Dictionaries(NamedTuple):
    """The numbers of users and items; `held` is a copy of the items' numbers in every worker.

    `held` is None if there are too many items.
    """

    users: DataFrame
    items: DataFrame
    held: Shared[ItemNumbers] | None


def dictionaries(users: DataFrame, items: DataFrame, item_count: int) -> Dictionaries:
    """Return the dictionaries, ``user_id, user`` and ``item_id, item``, in the form for merging."""
    items = items.select("item_id", "item")
    if item_count > _MOST_HELD:
        joined = F.broadcast(items) if item_count <= _BROADCAST_IDS else items
        return Dictionaries(users, joined, None)
    rows = items.toArrow()
    ids = rows.column("item_id").combine_chunks().cast(pa.string())
    numbers = ItemNumbers(ids, rows.column("item").to_numpy().astype(np.int64))
    return Dictionaries(users, items, share(items.sparkSession, numbers))


@dataclass(frozen=True)
class Pieces:
    """The pieces of all good rows, by shares of users; `parted` if the split is given."""

    rows: DataFrame
    shares: Shares
    parted: bool = False

    def user_ids(self, *, few: bool) -> DataFrame:
        """Return the user ids, each once; with `few` ratings unshuffled, and so with repeats."""
        packed = self.rows.select("share", "users")
        packed = packed if few else self._dealt_out(packed)
        return by_workers(packed.select("users"), distinct_users, ddl(ID_COLUMNS))

    def item_ids(self) -> DataFrame:
        """Return the item ids of all pieces, each with its piece and its place there."""
        return self.rows.select("chunk", "share", F.posexplode("items").alias("place", "item_id"))

    def ratings_as_given(self) -> DataFrame:
        """Return the column `rating` as it is in the input, duplicates included."""
        return by_workers(self.rows.select("ratings"), unpacked_ratings, "rating double")

    def merged(self, known: Dictionaries, policy: str, *, repeated: bool = False) -> DataFrame:
        """Return ``user, item, rating, timestamp`` of the ratings that count, or of the `repeated`.

        If the split is given, with their ``part``.

        Packed rows are shuffled once. A partition has whole buckets of users; every share in it is
        ordered by user and item. Workers look up the numbers of items if each of them can hold the
        dictionary.
        """
        pack = partial(pack_numbers, shares=self.shares)
        user_numbers = by_workers(known.users.select("user_id", "user"), pack, ddl(NUMBER_COLUMNS))
        columns = ["chunk", "share", "users", "user_codes", "item_codes", "ratings", "times"]
        columns += ["parts"] if self.parted else []
        rows = self.rows.select(*columns, *([] if known.held is None else ["items"]))
        if known.held is None:
            numbers = self._item_numbers(known.items)
            rows = rows.unionByName(numbers, allowMissingColumns=True)
        rows = rows.unionByName(user_numbers, allowMissingColumns=True)
        merge = partial(merge_shares, policy=policy, repeated=repeated, dictionary=known.held)
        dealt_out = self._dealt_out(rows)
        if self.shares.each > 1:
            dealt_out = dealt_out.sortWithinPartitions("share")
        made = PARTED_COLUMNS if self.parted else RATING_COLUMNS
        return by_workers(dealt_out, merge, ddl(made))

    def _item_numbers(self, items: DataFrame) -> DataFrame:
        """Return the numbers of the items in every piece, in the order of the piece."""
        places = self.item_ids().join(items, "item_id").select("chunk", "share", "place", "item")
        listed = F.array_sort(F.collect_list(F.struct("place", "item")))
        return places.groupBy("chunk", "share").agg(
            F.transform(listed, lambda entry: entry["item"]).alias("item_numbers")
        )

    def _dealt_out(self, rows: DataFrame) -> DataFrame:
        """Return the rows, moved to the task of their `share`."""
        task = F.floor(F.col("share") / self.shares.each).cast("int")
        return rows.repartitionById(self.shares.tasks, task)
