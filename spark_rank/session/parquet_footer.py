"""Reads the footer of a Parquet file from the file's last bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from spark_rank.session.files import FileInfo, Files

# most footers are smaller; their length and Parquet's four magic bytes follow them
_FOOTER = 1 << 14
_BEHIND = 8


def read_footer(files: Files, info: FileInfo) -> pq.FileMetaData:
    """Return a file's footer; only the end of the file is read."""
    end = files.tail(info, _FOOTER)
    needed = int.from_bytes(end[-_BEHIND:-4], "little") + _BEHIND
    if needed > len(end):
        end = files.tail(info, needed)
    return pq.read_metadata(pa.BufferReader(end))


def column_statistics(group: pq.RowGroupMetaData, column: str) -> pq.Statistics | None:
    """Return a row group's statistics of a column, None if it has none."""
    chunks = (group.column(place) for place in range(group.num_columns))
    return next((chunk.statistics for chunk in chunks if chunk.path_in_schema == column), None)
