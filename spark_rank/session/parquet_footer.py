"""The footer of a Parquet file, read by the driver from the file's last bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from spark_rank.session.files import FileInfo, Files

# most footers are smaller; behind them stand their length and four bytes of Parquet's own
_FOOTER = 1 << 14
_BEHIND = 8


def read_footer(files: Files, info: FileInfo) -> pq.FileMetaData:
    """Return a file's footer, from its last bytes alone."""
    end = files.tail(info, _FOOTER)
    needed = int.from_bytes(end[-_BEHIND:-4], "little") + _BEHIND
    if needed > len(end):
        end = files.tail(info, needed)
    return pq.read_metadata(pa.BufferReader(end))


def column_statistics(group: pq.RowGroupMetaData, column: str) -> pq.Statistics | None:
    """Return what a row group tells of a column, None if it tells nothing."""
    chunks = (group.column(place) for place in range(group.num_columns))
    return next((chunk.statistics for chunk in chunks if chunk.path_in_schema == column), None)
