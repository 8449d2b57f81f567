"""All experiments one after another, and one page about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.engine.runner import run_stages, working_on
from spark_rank.engine.session import spark_session
from spark_rank.engine.store import Run
from spark_rank.errors import ConfigError
from spark_rank.report.experiments import reproduction_page
from spark_rank.stages import experiment, experiment_report
from spark_rank.stages.report import write_page

FILE = "reproduce/report.html"


def reproduce(configs: Sequence[Config]) -> str:
    """Run the experiments in a Spark session of their own; return where the page is."""
    check_configs(configs)
    with spark_session("spark_rank reproduce", configs[0].spark) as spark:
        return reproduce_with(spark, configs)


def reproduce_with(spark: SparkSession, configs: Sequence[Config]) -> str:
    """Run every experiment that is not done, each as a run of its own, and write the page."""
    outcomes = {}
    for config in configs:
        run = Run(spark, config.store, config.run_id)
        with working_on(run):
            run_stages([experiment.STAGE, experiment_report.STAGE], config, spark, run)
        outcomes[config.run_id] = experiment_report.outcome_of(run)
    path = run.files.qualified(f"{configs[0].store.rstrip('/')}/{FILE}")
    write_page(reproduction_page(outcomes), path, run.files)
    return path


def check_configs(configs: Sequence[Config]) -> None:
    """Refuse configurations that cannot be run together."""
    if not configs:
        raise ConfigError("reproduce: name at least one configuration, such as conf/paper/*.yaml")
    first = configs[0]
    for config in configs:
        experiment.chosen_experiment(config)
        if replace(config, experiment=first.experiment, run_id=first.run_id) != first:
            raise ConfigError(
                f"reproduce: {config.run_id} and {first.run_id} differ in more than run_id "
                "and experiment: run them one by one with `spark-rank experiment`"
            )
    names = [config.run_id for config in configs]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"reproduce: run_id {name!r} is that of several configurations: every experiment "
                "needs a run of its own"
            )
