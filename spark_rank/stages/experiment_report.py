"""The page of an experiment, made from what its stage left."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.data.contracts import Contract
from spark_rank.data.tables import EXPERIMENT_CLAIMS, EXPERIMENT_RESULTS, EXPERIMENT_SUMMARY
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.report.experiments import PICTURES, Outcome, experiment_page
from spark_rank.stages.report import FILE, write_page


def experiment_report(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Write the page."""
    write_page(experiment_page(run.run_id, outcome_of(run)), run.draft_path(FILE), run.files)
    return StageResult(run.path(FILE), facts={"file": FILE})


def outcome_of(run: Run) -> Outcome:
    """Return what the experiment of a run left."""
    record = run.record("experiment") or {}
    summary, claims = (_rows(contract, run) for contract in (EXPERIMENT_SUMMARY, EXPERIMENT_CLAIMS))
    # of most experiments the page shows means only: half a million results need not be held
    drawn = record["settings"]["name"] in PICTURES
    results = _rows(EXPERIMENT_RESULTS, run) if drawn else []
    return Outcome(record, results, summary, claims)


def _rows(contract: Contract, run: Run) -> list[dict[str, Any]]:
    return run.read(contract).toArrow().to_pylist()


STAGE = Stage(
    name="experiment_report",
    run=experiment_report,
    settings=lambda config: None,
    needs=lambda config: ("experiment",),
    view=True,
)
