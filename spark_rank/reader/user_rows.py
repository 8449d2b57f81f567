"""Reads one user's rows of a table: finds them by bucket and row group, reads nothing else.

The ids of a row group are read once and kept, about ten bytes a row. All other columns are read
only from the row groups that hold the user.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from spark_rank.reader.run_folder import RunFolder
from spark_rank.tables.contract import Contract

_BUCKET = re.compile(r"/bucket=(\d+)/")


@dataclass(frozen=True)
class RowGroup:
    """A part of a file, and the first and last bucket of its users."""

    folder: RunFolder
    path: str
    footer: pq.FileMetaData
    number: int
    first: int
    last: int

    @cached_property
    def user_ids(self) -> pa.Array:
        """Return the user of every row."""
        return self.read(["user_id"]).column("user_id").combine_chunks()

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return some columns of all rows of the group."""
        with self.folder.files.open_input_file(self.path) as source:
            file = pq.ParquetFile(source, metadata=self.footer)
            return file.read_row_group(self.number, columns=list(columns))

    def places(self, user_id: str) -> NDArray[np.int64]:
        """Return the positions of a user's rows."""
        return np.flatnonzero(pc.equal(self.user_ids, user_id))


class UserRows:
    """A table whose rows belong to users."""

    def __init__(
        self, folder: RunFolder, contract: Contract, columns: Sequence[str] | None = None
    ) -> None:
        self._folder = folder
        self._contract = contract
        self._columns = columns or [column.name for column in contract.columns]

    @cached_property
    def groups(self) -> list[RowGroup]:
        """Return the row groups of all files."""
        return [
            group for path in self._folder.table_files(self._contract)
            for group in _groups(self._folder, path, self._folder.footer(path, self._contract))
        ]  # fmt: skip

    def of_user(self, user_id: str, bucket: int) -> pa.Table | None:
        """Return a user's rows; None if the table has no such user in this bucket."""
        parts = [
            group.read(self._columns).take(pa.array(places))
            for group in self.groups
            if group.first <= bucket <= group.last and len(places := group.places(user_id))
        ]
        return pa.concat_tables(parts) if parts else None


def _groups(folder: RunFolder, path: str, footer: pq.FileMetaData) -> list[RowGroup]:
    return [
        RowGroup(folder, path, footer, number, *_buckets(path, footer.row_group(number)))
        for number in range(footer.num_row_groups)
    ]


def _buckets(path: str, group: pq.RowGroupMetaData) -> tuple[int, int]:
    """Return the first and last bucket: from the folder's name, or the column's statistics."""
    if (folder_bucket := _BUCKET.search(path)) is not None:
        return int(folder_bucket[1]), int(folder_bucket[1])
    columns = [group.column(place) for place in range(group.num_columns)]
    (statistics,) = [column.statistics for column in columns if column.path_in_schema == "bucket"]
    return statistics.min, statistics.max
