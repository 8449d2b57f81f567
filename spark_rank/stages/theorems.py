"""theorems: the theorems of preference-based ranking, tested on random tournaments."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.preference.theorems import run_theorems
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import THEOREMS


def theorems(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Run the experiment, which needs no data and takes at most a minute."""
    results = run_theorems(config.seed, config.theorems.trials)
    rows = [dataclasses.asdict(row) for row in results]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(THEOREMS.columns))
    written = run.write(THEOREMS, spark.createDataFrame(table).coalesce(1))
    counts = Counter(row.holds for row in results)
    return StageResult(
        f"{written} statements: {counts[True]} hold, {counts[False]} do not, {counts[None]} are "
        f"undecided after {config.theorems.trials} trials; see {run.path(THEOREMS.table)}",
        {THEOREMS.table: written},
    )


STAGE = Stage(name="theorems", run=theorems, settings=lambda config: config.theorems)
