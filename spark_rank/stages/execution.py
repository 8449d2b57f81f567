"""Executes a stage or the whole pipeline in a Spark session of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from spark_rank.config import Config
from spark_rank.records.results import EvaluateFacts
from spark_rank.report.console import accuracy_lines
from spark_rank.session.session import spark_session
from spark_rank.session.worker_log import tell_worker_lines
from spark_rank.stages import STAGES, experiment, experiment_report, pipeline, report
from spark_rank.stages.runner import check_stages, run_stages, validate, working_on
from spark_rank.stages.stage import Stage
from spark_rank.store.earlier_runs import with_earlier_runs
from spark_rank.store.needed_runs import note_needed_runs
from spark_rank.store.run import Run
from spark_rank.store.storage_faults import storage_faults_told
from spark_rank.tables.contracts import FINAL_MODELS
from spark_rank.tracking.connection import check_tracking
from spark_rank.tracking.mlflow_run import tracked

PIPELINE = "pipeline"


def execute(name: str, config: Config, *, takeover: bool = False) -> None:
    """Run one stage, or the pipeline with its summary, while holding the run's lease."""
    stages = _stages(name, config)
    validate(stages, config)  # before Spark starts
    if name == PIPELINE:
        check_tracking(config.tracking)
    with (
        storage_faults_told(config.store),
        spark_session(f"spark_rank {name} {config.run_id}", config.spark, config.store) as spark,
    ):
        run = Run(spark, config.store, config.run_id)
        try:
            with working_on(run, takeover=takeover):
                config = with_earlier_runs(config, run)
                plan = check_stages(stages, config, run, STAGES.values())
                note_needed_runs(run, config)
                with tracked(config, run) if name == PIPELINE else nullcontext():
                    run_stages(stages, config, spark, run, plan)
        except Exception:
            tell_worker_lines(spark)
            raise
        tell_worker_lines(spark)
        if name == PIPELINE:
            # flushed, because spark-submit may end before it passes on the last output
            print(run_summary(run.records(), run), flush=True)


def _stages(name: str, config: Config) -> list[Stage]:
    if name == PIPELINE:
        return pipeline(config)
    if name == experiment.STAGE.name:
        return [experiment.STAGE, experiment_report.STAGE]  # its page is made with it
    return [STAGES[name]]


def run_summary(records: Mapping[str, Mapping[str, Any]], run: Run) -> str:
    """Return the summary of a run for people: users, accuracy, paths of tables and report."""
    lines = ["", *accuracy_lines(run.facts(EvaluateFacts), records), ""]
    tables = [(name, run.path(name)) for name in ("models", "metrics", "summary", "quarantine")]
    if FINAL_MODELS.table in records.get("refit", {}).get("tables", {}):
        tables.insert(1, (FINAL_MODELS.table, run.path(FINAL_MODELS.table)))
    for name, path in [*tables, ("report", run.path(report.FILE))]:
        lines.append(f"{name:<13}{path.removeprefix('file:')}")
    return "\n".join(lines)
