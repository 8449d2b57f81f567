"""What the footers of Parquet files tell, read by the driver: looking costs less than a job."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq

from spark_rank.data.filesystem import FileInfo, Filesystem
from spark_rank.engine.inventory import READERS
from spark_rank.engine.worker_files import SUMMARY_KEY

# most footers are smaller; behind them stand their length and four bytes of Parquet's own
_FOOTER = 1 << 14
_BEHIND = 8


def stored_rows(files: Filesystem, folders: Iterable[str]) -> int:
    """Return how many rows the files in some folders, and below them, hold."""
    return sum(footer.num_rows for footer in _footers(files, folders))


def stored_range(files: Filesystem, folder: str, column: str) -> tuple[float, float] | None:
    """Return the least and greatest number in a column of a folder's files; None without any."""
    ends = [
        (float(statistics.min), float(statistics.max))
        for footer in _footers(files, [folder])
        for group in range(footer.num_row_groups)
        for statistics in [_statistics(footer.row_group(group), column)]
        if statistics is not None and statistics.has_min_max
    ]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None


def stored_summaries(files: Filesystem, folders: Iterable[str]) -> list[str]:
    """Return what the footers of such files say that workers have made of their rows."""
    told = [footer.metadata or {} for footer in _footers(files, folders)]
    return [each[SUMMARY_KEY.encode()].decode() for each in told]


def _footers(files: Filesystem, folders: Iterable[str]) -> list[pq.FileMetaData]:
    found = [info for folder in folders for info in files.below(folder)]
    with ThreadPoolExecutor(READERS) as readers:
        return list(readers.map(lambda info: read_footer(files, info), found))


def read_footer(files: Filesystem, info: FileInfo) -> pq.FileMetaData:
    """Return a file's footer, from its last bytes alone."""
    end = files.tail(info, _FOOTER)
    needed = int.from_bytes(end[-_BEHIND:-4], "little") + _BEHIND
    if needed > len(end):
        end = files.tail(info, needed)
    return pq.read_metadata(pa.BufferReader(end))


def _statistics(group: pq.RowGroupMetaData, column: str) -> pq.Statistics | None:
    chunks = (group.column(place) for place in range(group.num_columns))
    return next((chunk.statistics for chunk in chunks if chunk.path_in_schema == column), None)
