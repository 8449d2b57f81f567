"""What the footers of Parquet files tell, read by the driver: looking costs less than a job."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq

from spark_rank.session.filesystem import Filesystem
from spark_rank.session.parquet_footer import column_statistics, read_footer
from spark_rank.store.inventory import READERS


def stored_rows(files: Filesystem, folders: Iterable[str]) -> int:
    """Return how many rows the files in some folders, and below them, hold."""
    return sum(footer.num_rows for footer in _footers(files, folders))


def stored_range(files: Filesystem, folder: str, column: str) -> tuple[float, float] | None:
    """Return the least and greatest number in a column of a folder's files; None without any."""
    ends = [
        (float(statistics.min), float(statistics.max))
        for footer in _footers(files, [folder])
        for group in range(footer.num_row_groups)
        for statistics in [column_statistics(footer.row_group(group), column)]
        if statistics is not None and statistics.has_min_max
    ]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None


def _footers(files: Filesystem, folders: Iterable[str]) -> list[pq.FileMetaData]:
    found = [info for folder in folders for info in files.below(folder)]
    with ThreadPoolExecutor(READERS) as readers:
        return list(readers.map(lambda info: read_footer(files, info), found))
