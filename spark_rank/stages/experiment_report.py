"""The page of an experiment, made from what its stage left."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.data.tables import EXPERIMENT_CLAIMS, EXPERIMENT_RESULTS, EXPERIMENT_SUMMARY
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.report.experiments import Outcome, experiment_page

FILE = "report/report.html"


def experiment_report(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Write the page."""
    write_page(experiment_page(run.run_id, outcome_of(run)), run.path(FILE), run)
    return StageResult(run.path(FILE), facts={"file": FILE})


def outcome_of(run: Run) -> Outcome:
    """Return what the experiment of a run left."""
    tables = (EXPERIMENT_RESULTS, EXPERIMENT_SUMMARY, EXPERIMENT_CLAIMS)
    results, summary, claims = (run.read(contract).toArrow().to_pylist() for contract in tables)
    return Outcome(run.record("experiment") or {}, results, summary, claims)


def write_page(html: str, path: str, run: Run) -> None:
    """Write a page to any file system."""
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        page = Path(folder) / "report.html"
        page.write_text(html, encoding="utf-8")
        run.files.upload(page, path)


STAGE = Stage(
    name="experiment_report",
    run=experiment_report,
    settings=lambda config: None,
    needs=lambda config: ("experiment",),
    view=True,
)
