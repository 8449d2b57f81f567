"""From pieces to numbered ratings: dictionaries, one shuffle of packed rows, one merge a bucket."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.data.merging import (
    ID_COLUMNS,
    NUMBER_COLUMNS,
    RATING_COLUMNS,
    distinct_users,
    merge_buckets,
    pack_numbers,
    unpacked_ratings,
)
from spark_rank.data.pieces import PIECE_COLUMNS, cut_rows
from spark_rank.errors import InputDataError
from spark_rank.session.files import FileInfo
from spark_rank.session.workers import by_workers
from spark_rank.tables.contract import ddl

# of the input to a bucket: of plain text a million ratings or less, of packed text ten times that
_BUCKET_BYTES = 16 * 2**20
PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".parquet")
_PACKED_BYTES = 4 * 2**20


def bucket_count(files: list[FileInfo]) -> int:
    """Return into how many buckets the ratings are merged: it follows from the input alone."""
    parts = sum(
        info.size / (_PACKED_BYTES if info.path.endswith(PACKED) else _BUCKET_BYTES)
        for info in files
    )
    return max(1, round(parts))


def cut(checked: DataFrame, buckets: int) -> DataFrame:
    """Return the pieces and tallies of judged rows."""
    names = ("user_id", "item_id", "rating", "timestamp", "reason")
    return by_workers(
        checked.select(*names), partial(cut_rows, buckets=buckets), ddl(PIECE_COLUMNS)
    )


def counts_by_reason(pieces: DataFrame) -> dict[str | None, int]:
    """Return the number of rows per reason, None for the good ones."""
    rows = pieces.where("bucket is not null or reason is not null")
    counts = {
        row["reason"]: row["rows"]
        for row in rows.groupBy("reason").agg(F.sum("rows").alias("rows")).collect()
    }
    if not counts:
        raise InputDataError("the input holds no rows: there is no rating to learn from")
    return counts


@dataclass(frozen=True)
class Pieces:
    """The pieces of all good rows, by `buckets` buckets of users."""

    rows: DataFrame
    buckets: int

    def user_ids(self) -> DataFrame:
        """Return the different user ids, found bucket by bucket."""
        packed = self.rows.select("bucket", "users").repartitionById(self.buckets, "bucket")
        return by_workers(packed.select("users"), distinct_users, ddl(ID_COLUMNS))

    def item_ids(self) -> DataFrame:
        """Return the item ids of all pieces, with the piece and the place in it."""
        return self.rows.select("chunk", "bucket", F.posexplode("items").alias("place", "item_id"))

    def ratings_as_given(self) -> DataFrame:
        """Return the column `rating`, with what is repeated."""
        return by_workers(self.rows.select("ratings"), unpacked_ratings, "rating double")

    def merged(
        self, users: DataFrame, items: DataFrame, policy: str, *, repeated: bool = False
    ) -> DataFrame:
        """Return ``user, item, rating, timestamp``: what counts, or what it stands for too.

        Packed rows are shuffled once; a partition is a bucket, in the order of user and item.
        """
        places = self.item_ids().join(items, "item_id").select("chunk", "bucket", "place", "item")
        listed = F.array_sort(F.collect_list(F.struct("place", "item")))
        item_numbers = places.groupBy("chunk", "bucket").agg(
            F.transform(listed, lambda entry: entry["item"]).alias("item_numbers")
        )
        pack = partial(pack_numbers, buckets=self.buckets)
        user_numbers = by_workers(users.select("user_id", "user"), pack, ddl(NUMBER_COLUMNS))
        columns = ("chunk", "bucket", "users", "user_codes", "item_codes", "ratings", "times")
        rows = self.rows.select(*columns)
        for numbers in (item_numbers, user_numbers):
            rows = rows.unionByName(numbers, allowMissingColumns=True)
        merge = partial(merge_buckets, policy=policy, repeated=repeated)
        shuffled = rows.repartitionById(self.buckets, "bucket")
        return by_workers(shuffled, merge, ddl(RATING_COLUMNS))
