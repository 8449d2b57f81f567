"""A run's folder and manifest: its finished stages and tables, on any file system."""

from __future__ import annotations

from typing import Any

from spark_rank.config.run_ids import check_run_id
from spark_rank.errors import ConfigError
from spark_rank.records.facts import AnyFacts, read_facts
from spark_rank.session.files import Files
from spark_rank.store.containment import check_contained
from spark_rank.store.records import REMEDY, bad_record, checked_record
from spark_rank.tables.contract import Contract


class RunRecords:
    """``<store>/runs/run_id=<id>/``: one directory per table, one record per finished stage."""

    def __init__(self, files: Files, store: str, run_id: str) -> None:
        self.files = files
        self.run_id = run_id
        runs = f"{store.rstrip('/')}/runs"
        self.root = files.qualified(f"{runs}/run_id={check_run_id(run_id)}")
        check_contained(self.root, files.qualified(runs))

    def path(self, name: str) -> str:
        """Return the path of a published table or file of this run."""
        return f"{self.root}/{name}"

    def has(self, contract: Contract) -> bool:
        """Tell whether a finished stage has written the table."""
        return contract.table in self._recorded_tables()

    def rows(self, contract: Contract) -> int:
        """Return how many rows a recorded table has."""
        return self._recorded_rows(contract)

    def record(self, stage: str) -> dict[str, Any] | None:
        """Return a finished stage's record, or None."""
        path = self._record_path(stage)
        if not self.files.exists(path):
            return None
        try:
            text = self.files.read_text(path)
        except (ValueError, OSError) as error:
            raise bad_record(path, str(error)) from None
        return checked_record(path, text)

    def facts(self, kind: type[AnyFacts]) -> AnyFacts:
        """Return a finished stage's facts; raise `ContractError` if they do not have this type."""
        record = self.record(kind.stage)
        if record is None:
            raise ConfigError(
                f"run {self.run_id!r} has not finished '{kind.stage}': run `spark-rank "
                f"{kind.stage}` first, or `spark-rank pipeline` for all"
            )
        return read_facts(kind, record, self.run_id)

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the records of all finished stages."""
        names = self.recorded_stages()
        return {name: record for name in names if (record := self.record(name)) is not None}

    def recorded_stages(self) -> list[str]:
        """Return the names of the finished stages."""
        names = self.files.names(self.path("manifest"))
        return [name.removesuffix(".json") for name in names if name.endswith(".json")]

    def _recorded_tables(self) -> dict[str, int]:
        return {
            table: rows
            for record in self.records().values()
            for table, rows in record["tables"].items()
        }

    def _recorded_rows(self, contract: Contract) -> int:
        rows = self._recorded_tables().get(contract.table)
        if rows is None:
            raise ConfigError(
                f"run {self.run_id!r} has no finished table {contract.table!r}: run the stage "
                "that makes it, or `spark-rank pipeline`; if they are done already, an older "
                f"version of this package made the run{REMEDY}"
            )
        return rows

    def _record_path(self, stage: str) -> str:
        return self.path(f"manifest/{stage}.json")
