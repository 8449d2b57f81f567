"""ensemble: N PRanks, each on a random part of the examples, for every user or one sequence."""

from __future__ import annotations

import dataclasses
from typing import Any

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.config.labels import on_sequence
from spark_rank.config.sections import check_ensemble
from spark_rank.errors import ConfigError
from spark_rank.stages.ensemble_sequence import sequence_ensembles
from spark_rank.stages.ensemble_users import user_ensembles
from spark_rank.stages.ingest_inputs import files_of
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run

# keys that do not change the result
_IRRELEVANT = ("in_pipeline", "groups", "chunk")


def ensemble(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Learn the ensembles, their members in parallel."""
    if on_sequence(config.ensemble):
        return sequence_ensembles(config, spark, run)
    return user_ensembles(config, spark, run)


def _deciding_settings(config: Config) -> dict[str, Any]:
    settings = dataclasses.asdict(config.ensemble)
    return {key: value for key, value in settings.items() if key not in _IRRELEVANT}


def _needs(config: Config) -> tuple[str, ...]:
    if config.ensemble.sequence is not None:
        return ()
    if config.ensemble.user is not None:
        return ("features", "prepare", "ingest")
    return ("train", "features", "prepare", "ingest")


def _inputs(config: Config, run: Run) -> list[list[object]] | None:
    """Return what identifies the files of a sequence; None without a sequence."""
    path = config.ensemble.sequence
    if path is None:
        return None
    files = files_of("ensemble.sequence", path, run)
    return [[info.path, info.size, info.modified_ms] for info in files]


def _validate(config: Config) -> None:
    check_ensemble(config)
    if config.train.weights != "none":
        raise ConfigError(
            "train.weights: ensembles do not weigh ratings: leave it out, or do not learn ensembles"
        )


STAGE = Stage(
    name="ensemble",
    run=ensemble,
    settings=_deciding_settings,
    needs=_needs,
    inputs=_inputs,
    validate=_validate,
)
