"""Reads a run's folder on any file system of pyarrow: records, tables, files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from spark_rank.errors import ConfigError, ContractError
from spark_rank.reader.recorded import Record
from spark_rank.records.facts import AnyFacts, read_facts
from spark_rank.store.records import REMEDY, bad_record, checked_record
from spark_rank.tables.contract import Contract


class RunFolder:
    """The folder ``<store>/runs/run_id=<id>/``; only files that a record lists are read."""

    def __init__(self, files: fs.FileSystem, root: str) -> None:
        self.files = files
        self.root = root
        self._records: dict[str, Record | None] = {}

    @classmethod
    def at(cls, path: str | os.PathLike[str], files: fs.FileSystem | None = None) -> RunFolder:
        """Return the folder at a path on `files`, at a URI, or on the local disk."""
        text = os.fspath(path).rstrip("/")
        if files is None and "://" in text and not text.startswith("file:"):
            # s3a is Hadoop's name for s3
            files, text = fs.FileSystem.from_uri(text.replace("s3a://", "s3://", 1))
        elif files is None:
            text = os.path.abspath(text.removeprefix("file://").removeprefix("file:"))
            files = fs.LocalFileSystem()
        if files.get_file_info(text).type != fs.FileType.Directory:
            raise ConfigError(
                f"{text}: is not a folder: name the folder of a run, <store>/runs/run_id=NAME"
            )
        return cls(files, text)

    @property
    def is_local(self) -> bool:
        """Tell whether the files lie on this machine's disk."""
        return isinstance(self.files, fs.LocalFileSystem)

    def record(self, stage: str) -> Record | None:
        """Return a finished stage's record, or None."""
        if stage not in self._records:
            self._records[stage] = self._read_record(f"{self.root}/manifest/{stage}.json")
        return self._records[stage]

    def facts(self, kind: type[AnyFacts]) -> AnyFacts:
        """Return the facts of a finished stage."""
        return read_facts(kind, self.record(kind.stage) or {}, self.root)

    def has(self, contract: Contract) -> bool:
        """Tell whether a finished stage has written the table."""
        return contract.table in self._tables

    def table_files(self, contract: Contract) -> list[str]:
        """Return the Parquet files of a table, as its record lists them."""
        if not self.has(contract):
            raise ConfigError(
                f"{self.root}: the run has no finished table {contract.table!r}: run the stage "
                "that makes it, or `spark-rank pipeline`"
            )
        listed = (self.record(self._tables[contract.table]) or {})["files"]
        below = f"{contract.table}/"
        return [f"{self.root}/{name}" for name in sorted(listed)
                if name.startswith(below) and name.endswith(".parquet")]  # fmt: skip

    def footer(self, path: str, contract: Contract) -> pq.FileMetaData:
        """Return a file's footer; raise `ContractError` for another version of the table."""
        try:
            with self.files.open_input_file(path) as source:
                footer = pq.read_metadata(source)
        except (OSError, pa.ArrowInvalid) as error:
            raise ContractError(f"{path}: cannot be read ({error}){REMEDY}") from None
        other = contract.other_version(footer)
        if other is not None:
            raise ContractError(
                f"{path}: holds version {other}, this package reads version "
                f"{contract.version}{REMEDY}"
            )
        return footer

    def read(self, contract: Contract, columns: Sequence[str]) -> pa.Table:
        """Return some columns of a whole table."""
        parts = []
        for path in self.table_files(contract):
            footer = self.footer(path, contract)
            with self.files.open_input_file(path) as source:
                parts.append(pq.ParquetFile(source, metadata=footer).read(columns=list(columns)))
        return pa.concat_tables(parts)

    def copy(self, name: str, target: Path) -> None:
        """Copy one file of the run to a local path."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            self.files.open_input_stream(f"{self.root}/{name}") as source,
            target.open("wb") as sink,
        ):
            shutil.copyfileobj(source, sink)

    def record_names(self) -> list[str]:
        """Return the files of all records, as paths in the run."""
        return sorted(f"manifest/{info.base_name}" for info in self._manifest)

    @cached_property
    def _tables(self) -> dict[str, str]:
        """Return the stage of every finished table."""
        stages = [info.base_name.removesuffix(".json") for info in self._manifest]
        return {table: stage for stage in sorted(stages)
                for table in (self.record(stage) or {})["tables"]}  # fmt: skip

    @property
    def _manifest(self) -> list[fs.FileInfo]:
        selector = fs.FileSelector(f"{self.root}/manifest", allow_not_found=True)
        return [info for info in self.files.get_file_info(selector)
                if info.extension == "json" and not info.base_name.startswith(".")]  # fmt: skip

    def _read_record(self, path: str) -> Record | None:
        if self.files.get_file_info(path).type != fs.FileType.File:
            return None
        try:
            with self.files.open_input_stream(path) as source:
                text = source.read().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise bad_record(path, str(error)) from None
        return checked_record(path, text)
