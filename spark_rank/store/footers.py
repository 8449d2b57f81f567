"""Reads rows, ranges and versions from the footers of Parquet files, without a Spark job."""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq

from spark_rank.errors import ContractError
from spark_rank.session.files import Files
from spark_rank.session.parquet_footer import column_statistics, read_footer
from spark_rank.store.inventory import READERS
from spark_rank.store.records import REMEDY
from spark_rank.tables.contract import Contract

_PARTITION = re.compile(r"/(bucket)=")


def stored_rows(files: Files, folders: Iterable[str]) -> int:
    """Return the number of rows of all files in and below some folders."""
    return sum(footer.num_rows for footer in _footers(files, folders))


def stored_range(files: Files, folder: str, column: str) -> tuple[float, float] | None:
    """Return the least and greatest number in a column of a folder's files; None if empty."""
    ends = [
        (float(statistics.min), float(statistics.max))
        for footer in _footers(files, [folder])
        for group in range(footer.num_row_groups)
        for statistics in [column_statistics(footer.row_group(group), column)]
        if statistics is not None and statistics.has_min_max
    ]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None


def check_stored(files: Files, folder: str, contract: Contract, rows: int) -> None:
    """Raise `ContractError` unless a table's files have the right columns, version and rows."""
    footers = _footers(files, [folder])
    partitions = {part for info in files.below(folder) for part in _PARTITION.findall(info.path)}
    for footer in footers:
        contract.check_arrow(footer.schema.to_arrow_schema(), partitions)
    others = [other for footer in footers if (other := contract.other_version(footer)) is not None]
    if others:
        raise ContractError(
            f"{folder}: holds version {max(others)}, this package reads version "
            f"{contract.version}{REMEDY}"
        )
    stored = sum(footer.num_rows for footer in footers)
    if stored != rows:
        raise ContractError(f"{folder}: holds {stored:,} rows, the manifest says {rows:,}{REMEDY}")


def _footers(files: Files, folders: Iterable[str]) -> list[pq.FileMetaData]:
    infos = [info for folder in folders for info in files.below(folder)]
    with ThreadPoolExecutor(READERS) as readers:
        return list(readers.map(lambda info: read_footer(files, info), infos))
