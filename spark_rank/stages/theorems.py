"""theorems: preference-based ranking's theorems, tried on random tournaments."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.data.contracts import arrow_schema
from spark_rank.data.tables import THEOREMS
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.preference.theorems import run_theorems


def theorems(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Run the experiment; it needs no data, and a minute at most."""
    found = run_theorems(config.seed, config.theorems.trials)
    rows = [dataclasses.asdict(row) for row in found]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(THEOREMS.columns))
    written = run.write(THEOREMS, spark.createDataFrame(table).coalesce(1))
    holding = sum(bool(row.holds) for row in found)
    return StageResult(f"{holding} of {written} statements hold", {THEOREMS.table: written})


STAGE = Stage(name="theorems", run=theorems, settings=lambda config: config.theorems)
