"""experiment: one of the papers' experiments, with its units of work spread over tasks."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from threadpoolctl import threadpool_limits

from spark_rank.config import Config
from spark_rank.config.values import SettingError, convert, suggestion
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.experiments import EXPERIMENTS, Experiment
from spark_rank.experiments.frame import Need, Study, Timing, Unit
from spark_rank.experiments.rating_profile import rating_profile
from spark_rank.experiments.summary import Found, compare, summarise
from spark_rank.frames.experiment_units import (
    PLACED_COLUMNS,
    RatingSetFiles,
    UnitJob,
    open_distributed_set,
    result_of,
    run_units,
)
from spark_rank.records.results import ExperimentFacts, RatingSetProfile
from spark_rank.session.workers import by_workers
from spark_rank.stages.experiment_data import (
    FoundFile,
    distribute,
    find_data,
    read_rating_set,
)
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contract import Contract, arrow_schema, ddl
from spark_rank.tables.contracts import EXPERIMENT_CLAIMS, EXPERIMENT_RESULTS, EXPERIMENT_SUMMARY
from spark_rank.visible import visible
from spark_rank.wording import count_of

# units differ in cost: many small tasks share them evenly
_TASKS_PER_CORE = 16


class StopWatch:
    """The seconds of each step, for the report."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._since = time.monotonic()

    def lap(self, step: str) -> None:
        """Record the time since the last lap as that of a step."""
        now = time.monotonic()
        self.laps[step] = round(now - self._since, 3)
        self._since = now


def experiment(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Run every unit of work once, then sum up; without its data an experiment is skipped."""
    definition, settings = chosen_experiment(config)
    needs = tuple(definition.needs(settings))
    sources = find_data(needs, config, run)
    missing = [f"{need.name}: {need.files}" for need in needs if need.name not in sources]
    if needs and not sources:
        return _skipped(config, missing, run)
    clock = StopWatch()
    profiles, files = _distributed(sources, spark, run)
    # memory-mapped: shared with the workers on this machine
    data = {name: open_distributed_set(one) for name, one in files.items()}
    study = Study(definition.name, settings, config.seed, data)
    clock.lap("reading and distributing ratings")
    study = _with_choice(definition, study, files, spark)
    clock.lap("choosing parameters")
    units = _some(definition.units(study), study)
    job = UnitJob(definition.name, settings, config.seed, files, units, study.chosen)
    rows = _run(spark, job)
    clock.lap("units of work")
    collected = [Found(row["unit"], result_of(row)) for row in rows.to_pylist()]
    tables = {
        EXPERIMENT_RESULTS.table: _write(run, EXPERIMENT_RESULTS, rows),
        EXPERIMENT_SUMMARY.table: _write_rows(
            run, EXPERIMENT_SUMMARY, summarise(definition, settings, collected)
        ),
        EXPERIMENT_CLAIMS.table: _write_rows(
            run, EXPERIMENT_CLAIMS, compare(definition, settings, collected)
        ),
    }
    clock.lap("means, tests and tables")
    timings = tuple(_timings(definition, study))
    clock.lap("timing on the driver")
    return StageResult(
        f"{definition.name}: {count_of(len(units), 'unit')} of work, "
        f"{count_of(len(rows), 'result')}"
        + (f"; missing data: {'; '.join(missing)}" if missing else ""),
        tables,
        ExperimentFacts(
            units=len(units),
            data={name: source.file.name for name, source in sources.items()},
            missing=tuple(missing),
            profiles=tuple(profiles),
            chosen=study.chosen,
            timings=timings,
            seconds_by_step=clock.laps,
        ),
    )


def _distributed(
    sources: Mapping[str, FoundFile], spark: SparkSession, run: Run
) -> tuple[list[RatingSetProfile], dict[str, RatingSetFiles]]:
    """Read the data sets and put them onto every node; return their profiles and files."""
    profiles, files = [], {}
    for name, source in sources.items():
        ratings, implicit = read_rating_set(spark, source, run)
        profiles.append(rating_profile(ratings, implicit))
        files[name] = distribute(ratings, spark, run)
    return profiles, files


def chosen_experiment(config: Config) -> tuple[Experiment, Any]:
    """Return the configured experiment and its settings, or raise `ConfigError`."""
    name = config.experiment.name
    if name is None:
        raise ConfigError(
            "experiment.name: names no experiment: set it, or give a file that does with --config; "
            f"there are: {', '.join(EXPERIMENTS)}"
        )
    if name not in EXPERIMENTS:
        raise ConfigError(
            f"experiment.name: unknown experiment {visible(name, 60)!r} "
            f"({suggestion(name, EXPERIMENTS)})"
        )
    definition = EXPERIMENTS[name]
    try:
        settings = convert(definition.settings, config.experiment.settings, "experiment.settings")
    except SettingError as problem:
        raise ConfigError(str(problem)) from None
    return definition, settings


def _skipped(config: Config, missing: Sequence[str], run: Run) -> StageResult:
    tables = {
        contract.table: _write_rows(run, contract, [])
        for contract in (EXPERIMENT_RESULTS, EXPERIMENT_SUMMARY, EXPERIMENT_CLAIMS)
    }
    return StageResult(
        f"{config.experiment.name}: skipped, because its data is not in {config.experiment.data}: "
        f"{'; '.join(missing)}",
        tables,
        ExperimentFacts(units=0, data={}, missing=tuple(missing), skipped=True),
    )


def _with_choice(
    definition: Experiment, study: Study, files: Mapping[str, RatingSetFiles], spark: SparkSession
) -> Study:
    """Run the pilot, if there is one, and return the study with its choice of settings."""
    if definition.pilot is None:
        return study
    units = _some(definition.pilot.units(study), study)
    rows = _run(spark, UnitJob(definition.name, study.settings, study.seed, files, units, None))
    results = [result_of(row) for row in rows.to_pylist()]
    return dataclasses.replace(study, chosen=definition.pilot.choose(study, results))


def _some(units: Sequence[Unit], study: Study) -> tuple[Unit, ...]:
    """Return the units, or raise `InputDataError` if the thresholds leave nobody to try."""
    if units:
        return tuple(units)
    names = " and ".join(one.name for one in study.data.values()) or "the settings"
    values = ", ".join(f"{name}={value}" for name, value in vars(study.settings).items())
    raise InputDataError(
        f"{study.experiment}: nobody in {names} passes the thresholds: lower them in "
        f"experiment.settings, which are {values}"
    )


def _timings(definition: Experiment, study: Study) -> Sequence[Timing]:
    if definition.timings is None:
        return ()
    with threadpool_limits(1, user_api="blas"):
        return definition.timings(study)


def _run(spark: SparkSession, job: UnitJob) -> pa.Table:
    """Return all units' results, in the order of the units."""
    tasks = min(len(job.units), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, len(job.units), 1, max(tasks, 1))
    placed = by_workers(numbers, partial(run_units, job=job), ddl(PLACED_COLUMNS))
    rows = placed.toArrow().sort_by([("unit", "ascending"), ("place", "ascending")])
    return rows.drop_columns(["place"])


def _write_rows(run: Run, contract: Contract, rows: Sequence[Any]) -> int:
    plain = [dataclasses.asdict(row) for row in rows]
    return _write(run, contract, pa.Table.from_pylist(plain, arrow_schema(contract.columns)))


def _write(run: Run, contract: Contract, rows: pa.Table) -> int:
    frame: DataFrame = run.spark.createDataFrame(rows)
    return run.write(contract, frame.coalesce(1))


def _inputs(config: Config, run: Run) -> list[list[object]]:
    """Return what identifies the data sets: the files that were found."""
    definition, settings = chosen_experiment(config)
    needs: tuple[Need, ...] = tuple(definition.needs(settings))
    sources = find_data(needs, config, run)
    return [
        [name, info.path, info.size, info.modified_ms]
        for name, source in sources.items()
        for info in source.infos
    ]


def _settings(config: Config) -> dict[str, Any]:
    definition, settings = chosen_experiment(config)
    return {"name": definition.name, "settings": dataclasses.asdict(settings)}


STAGE = Stage(
    name="experiment",
    run=experiment,
    settings=_settings,
    inputs=_inputs,
    validate=chosen_experiment,
)
