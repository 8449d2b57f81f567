"""``spark-rank track``: send an existing run to MLflow."""

from __future__ import annotations

from spark_rank.config import Config
from spark_rank.errors import ConfigError
from spark_rank.records.facts import was_skipped
from spark_rank.session.files import Files, store_files
from spark_rank.stages import pipeline
from spark_rank.stages.run_plan import StageRequest, contradiction
from spark_rank.stages.runner import plain
from spark_rank.store.catalogue import COMPLETE, RUNNING, Catalogue
from spark_rank.store.earlier_runs import with_earlier_runs
from spark_rank.store.run_records import RunRecords
from spark_rank.tracking.connection import check_tracking
from spark_rank.tracking.mlflow_run import send


def track(config: Config) -> str:
    """Send a run to MLflow, for the first time or again; return its MLflow run id."""
    if config.tracking.mlflow is None:
        raise ConfigError(
            "track: tracking.mlflow is not set: give MLflow's tracking URI with "
            "--set tracking.mlflow=URI"
        )
    check_tracking(config.tracking)
    with store_files("spark_rank track", config.store, config.spark) as files:
        return _send(config, files)


def _send(config: Config, files: Files) -> str:
    catalogue = Catalogue(files, config.store)
    run = catalogue.run(config.run_id)
    state = catalogue.state(run.run_id)
    if state.state == RUNNING:
        raise ConfigError(
            f"run {run.run_id!r}: {state.detail}: its pipeline sends it to MLflow when it ends"
        )
    config = with_earlier_runs(config, run)
    _check_same_settings(config, run)
    failed = None if state.state == COMPLETE else f"{state.state}: {state.detail}"
    return send(config, run, failed)


def _check_same_settings(config: Config, run: RunRecords) -> None:
    """Raise `ConfigError` if the run has other settings: MLflow would show the wrong ones."""
    for stage in pipeline(config):
        done = run.record(stage.name)
        if done is None or was_skipped(done) or stage.view:
            continue
        request = StageRequest(stage.name, config.seed, plain(stage.settings(config)), None)
        if (done["settings"], done["seed"]) != (request.settings, request.seed):
            raise contradiction(request, done, run.run_id)
