"""A run's tables and manifest: data first, then the record; readers trust only what is recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_rank.data.contracts import Contract
from spark_rank.engine.filesystem import Filesystem
from spark_rank.errors import ConfigError, ContractError


class Run:
    """``<store>/runs/run_id=<id>/``: one directory per table, one record per finished stage."""

    def __init__(self, spark: SparkSession, store: str, run_id: str) -> None:
        self.spark = spark
        self.run_id = run_id
        self.files = Filesystem(spark)
        self.root = self.files.qualified(f"{store.rstrip('/')}/runs/run_id={run_id}")

    def path(self, name: str) -> str:
        """Return where a table or file of this run lives."""
        return f"{self.root}/{name}"

    def write(
        self, contract: Contract, frame: DataFrame, partition_by: tuple[str, ...] = ()
    ) -> int:
        """Write a table under its contract; return the rows that are there afterwards.

        What an unfinished stage left under that name is replaced: no record lists it.
        """
        path = self.path(contract.table)
        writer = contract.apply(frame).write.mode("overwrite")
        writer.partitionBy(*partition_by).parquet(path)
        # counted from the files, not from what was meant to be written
        return self.spark.read.schema(contract.schema()).parquet(path).count()

    def read(self, contract: Contract) -> DataFrame:
        """Return a recorded table after checking it against its contract."""
        if contract.table not in self._recorded_tables():
            raise ConfigError(
                f"run {self.run_id!r} has no finished table {contract.table!r}: run the stage "
                "that makes it, or `spark-rank pipeline`"
            )
        frame = self.spark.read.parquet(self.path(contract.table))
        return contract.check(frame)

    def record(self, stage: str) -> dict[str, Any] | None:
        """Return a finished stage's record, or None."""
        path = self._record_path(stage)
        if not self.files.exists(path):
            return None
        try:
            record = json.loads(self.files.read_text(path))
        except ValueError as error:
            raise ContractError(
                f"{path}: not a valid stage record ({error}): delete it to run the stage again"
            ) from None
        return dict(record)

    def write_record(self, stage: str, record: Mapping[str, Any]) -> None:
        """Publish a stage: its data is complete."""
        text = json.dumps(record, indent=2, sort_keys=True, default=str)
        self.files.write_text(self._record_path(stage), text + "\n")

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the records of all finished stages."""
        found = self.files.glob(self.path("manifest") + "/*.json")
        names = [info.path.rsplit("/", 1)[-1].removesuffix(".json") for info in found]
        return {name: record for name in names if (record := self.record(name)) is not None}

    def _recorded_tables(self) -> set[str]:
        return {table for record in self.records().values() for table in record["tables"]}

    def _record_path(self, stage: str) -> str:
        return self.path(f"manifest/{stage}.json")
