"""Runs several experiments one after another, and writes one page about them."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.errors import ConfigError, ExperimentsFailedError, SparkRankError
from spark_rank.events import emit, process_log
from spark_rank.report.experiments import Outcome, failed_outcome, reproduction_page
from spark_rank.session.filesystem import java_reason
from spark_rank.session.session import spark_session
from spark_rank.stages import experiment, experiment_report
from spark_rank.stages.report import write_page
from spark_rank.stages.runner import run_stages, working_on
from spark_rank.store.run import Run
from spark_rank.store.storage_faults import storage_faults_told
from spark_rank.wording import count_of

FILE = "reproduce/report.html"


def reproduce(configs: Sequence[Config]) -> str:
    """Run the experiments in a Spark session of their own; return where the page is."""
    check_configs(configs)
    with spark_session("spark_rank reproduce", configs[0].spark) as spark:
        return reproduce_with(spark, configs)


def reproduce_with(spark: SparkSession, configs: Sequence[Config]) -> str:
    """Run every experiment that is not done, each as a run of its own, and write the page.

    If one fails, the others still run: the page shows the failure, and the error is raised at the
    end.
    """
    outcomes, exit_codes = {}, []
    for config in configs:
        run = Run(spark, config.store, config.run_id)
        try:
            outcomes[config.run_id] = _run_one(config, spark, run)
        except Exception as error:  # noqa: BLE001 - hours of other experiments must not be lost
            outcomes[config.run_id] = _failed(config, error)
            exit_codes.append(getattr(error, "exit_code", SparkRankError.exit_code))
    path = run.files.qualified(f"{configs[0].store.rstrip('/')}/{FILE}")
    write_page(reproduction_page(outcomes), path, run.files)
    if exit_codes:
        raise ExperimentsFailedError(
            f"{len(exit_codes)} of {count_of(len(configs), 'experiment')} failed: start the same "
            f"command again to repeat them; {path.removeprefix('file:')} shows the others",
            exit_codes[0],
        )
    return path


def _run_one(config: Config, spark: SparkSession, run: Run) -> Outcome:
    with storage_faults_told(config.store), working_on(run):
        run_stages([experiment.STAGE, experiment_report.STAGE], config, spark, run)
    return experiment_report.outcome_of(run)


def _failed(config: Config, error: Exception) -> Outcome:
    """Emit the error as an event; return the outcome with its message."""
    message = str(error)
    if not isinstance(error, SparkRankError):
        process_log().trace(traceback.format_exc())
        message = f"{type(error).__name__}: {java_reason(error)}"
    emit("experiment_failed", f"{config.run_id}: {message}", stage=experiment.STAGE.name,
         level="error", experiment=config.experiment.name, error=type(error).__name__)  # fmt: skip
    return failed_outcome(experiment.chosen_experiment(config)[0].name, message)


def check_configs(configs: Sequence[Config]) -> None:
    """Raise `ConfigError` for configurations that cannot run together."""
    if not configs:
        raise ConfigError("reproduce: name at least one experiment")
    first = configs[0]
    for config in configs:
        experiment.STAGE.validate(config)
        if replace(config, experiment=first.experiment, run_id=first.run_id) != first:
            raise ConfigError(
                f"reproduce: {config.run_id} and {first.run_id} differ in more than run_id "
                "and experiment: run them one by one with `spark-rank experiment`"
            )
    names = [config.run_id for config in configs]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"reproduce: several configurations have run_id {name!r}: give every experiment "
                "its own"
            )
