"""A run's tables and manifest: data first, then the record; readers trust only recorded tables."""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_rank.errors import ContractError, RunHeldError
from spark_rank.session.filesystem import Filesystem
from spark_rank.store.drafts import Draft
from spark_rank.store.file_sizes import join_small_files
from spark_rank.store.footers import stored_range, stored_rows
from spark_rank.store.lease import Lease
from spark_rank.store.records import REMEDY, record_text
from spark_rank.store.run_records import RunRecords
from spark_rank.tables.contract import VERSION_COLUMN, Contract


@dataclass(frozen=True)
class _Checked:
    """A table whose content this process has compared with contract and record."""

    rows: int
    signs: frozenset[tuple[str, int, int]]
    schema: StructType


class Run(RunRecords):
    """A run whose tables Spark reads and writes."""

    files: Filesystem
    # whether models are learned from all ratings of a user, or from the training part
    all_ratings = False

    def __init__(self, spark: SparkSession, store: str, run_id: str) -> None:
        super().__init__(Filesystem(spark), store, run_id)
        self.spark = spark
        self.lease: Lease | None = None
        self._draft: Draft | None = None
        self._checked: dict[str, _Checked] = {}

    def own(self, contract: Contract) -> Contract:
        """Return the contract that this run uses for a table."""
        return contract

    def draft(self, stage: str, fingerprint: str) -> Draft:
        """Return the draft of a stage: what it writes before it is published."""
        attempt = secrets.token_hex(8) if self.lease is None else self.lease.token
        return Draft(self.files, self.root, stage, fingerprint, attempt, self.check_held)

    def with_draft(self, draft: Draft) -> Run:
        """Return this run as the stage in progress sees it, with its draft."""
        run = copy.copy(self)
        run._draft = draft
        return run

    def check_held(self) -> None:
        """Raise `RunHeldError` if this process held the run and was taken over."""
        if self.lease is not None:
            self.lease.check()

    @property
    def in_progress(self) -> Draft:
        """Return the draft of the stage in progress."""
        if self._draft is None:
            raise RuntimeError("only a stage in progress writes into a run")
        return self._draft

    def draft_path(self, name: str) -> str:
        """Return where the stage in progress writes a table or file."""
        return self.in_progress.path(name)

    def scratch_path(self, name: str) -> str:
        """Return where the stage in progress keeps temporary data."""
        return self.in_progress.path(f"_scratch/{name}")

    def keep(self, frame: DataFrame, name: str) -> DataFrame:
        """Write a frame that the stage in progress reads several times; return the stored frame."""
        path = self.scratch_path(name)
        frame.write.mode("overwrite").option("compression", "snappy").parquet(path)
        return self.spark.read.schema(frame.schema).parquet(path)

    def write(
        self, contract: Contract, frame: DataFrame, partition_by: tuple[str, ...] = ()
    ) -> int:
        """Write a table under its contract; return its number of rows.

        Readers see it when the stage is done.
        """
        folder = self.draft_path(contract.table)
        contract.writer(frame).partitionBy(*partition_by).parquet(folder)
        return self._join_files(contract, partition_by)

    def _join_files(self, contract: Contract, partition_by: tuple[str, ...]) -> int:
        """Join the many small files of a written table into few; return its number of rows."""
        folder = self.draft_path(contract.table)
        if not partition_by:  # partitioned tables keep the files of each directory
            join_small_files(self.spark, self.files, folder)
        # rows that the files really have, not the rows that should have been written
        folders = self.in_progress.folders(contract.table)
        rows = stored_rows(self.files, folders)
        if not partition_by:  # otherwise the schema also has columns from directory names
            schema = contract.schema()
            self._checked[contract.table] = _Checked(rows, self._signs(folder), schema)
        return rows

    def written(self, contract: Contract) -> DataFrame:
        """Return a table that the stage in progress has written."""
        parts = [self.spark.read.schema(contract.schema()).parquet(folder)
                 for folder in self.in_progress.folders(contract.table)]  # fmt: skip
        return reduce(DataFrame.unionByName, parts)

    def read(self, contract: Contract) -> DataFrame:
        """Return a recorded table after checking it against its contract."""
        rows = self._recorded_rows(contract)
        path = self.path(contract.table)
        if not self.files.exists(path):
            raise ContractError(f"{path}: the manifest lists this table, but it is gone{REMEDY}")
        signs, checked = self._signs(path), self._checked.get(contract.table)
        if checked is not None and (checked.rows, checked.signs) == (rows, signs):
            return self.spark.read.schema(checked.schema).parquet(path)
        frame = self.spark.read.parquet(path)
        try:
            contract.check(frame)
        except ContractError as error:
            raise ContractError(f"{path}: {error}{REMEDY}") from None
        self._check_content(contract, rows)
        self._checked[contract.table] = _Checked(rows, signs, frame.schema)
        return frame

    def range_of(self, contract: Contract, column: str) -> tuple[float, float]:
        """Return the least and greatest number in a column of a recorded table; 0 if empty."""
        self._recorded_rows(contract)
        return stored_range(self.files, self.path(contract.table), column) or (0.0, 0.0)

    def _signs(self, folder: str) -> frozenset[tuple[str, int, int]]:
        """Return name, size and time of a table's files, which is cheaper than a Spark job."""
        return frozenset(
            (file.path.removeprefix(folder), file.size, file.modified_ms)
            for file in self.files.below(folder)
        )

    def read_files(self, contract: Contract, files: Sequence[str]) -> DataFrame:
        """Return some files of a recorded table, by their paths from its folder."""
        if not files:
            return contract.apply(contract.nothing(self.spark))
        paths = [f"{self.path(contract.table)}/{name}" for name in files]
        return self.spark.read.schema(contract.schema()).parquet(*paths)

    def _check_content(self, contract: Contract, rows: int) -> None:
        """Refuse a table that differs from its record: lost rows, or rows of another version.

        This reads the files' footers and needs no Spark job.
        """
        path = self.path(contract.table)
        versions = set(stored_range(self.files, path, VERSION_COLUMN) or ())
        if versions - {contract.version}:
            raise ContractError(
                f"{path}: holds version {max(versions):.0f}, this package reads "
                f"version {contract.version}{REMEDY}"
            )
        stored = stored_rows(self.files, [path])
        if stored != rows:
            reason = f"holds {stored:,} rows, the manifest says {rows:,}"
            raise ContractError(f"{path}: {reason}{REMEDY}")

    def write_record(self, stage: str, record: Mapping[str, Any], *, renew: bool = False) -> None:
        """Write a stage's record, which publishes it: its data is complete."""
        plain = json.loads(json.dumps(record, default=str))
        text = record_text(plain)
        self.check_held()
        if renew:
            self.files.write_text(self._record_path(stage), text)
        elif not self.files.create_text(self._record_path(stage), text):
            raise RunHeldError(
                f"run {self.run_id!r}: another process has finished '{stage}' meanwhile: start "
                "the command again to go on from there"
            )
