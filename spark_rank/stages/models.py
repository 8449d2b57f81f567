"""All models of a run: those of train, and ensembles where the stage has made some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.config.labels import user_ensembles
from spark_rank.config.schema import EnsembleConfig, EnsembleLearnerConfig
from spark_rank.config.values import convert
from spark_rank.records.models import TrainFacts, UserEnsembleFacts
from spark_rank.stages.training import recorded_training
from spark_rank.store.run import Run
from spark_rank.tables.contracts import ENSEMBLE_MODELS, MODELS

# what a model row has beside the columns of `models`
MEMBERS = ("n_members", "members", "member_votes")


def all_models(run: Run) -> DataFrame:
    """Return a row per user and learner, ensembles among them, and the columns of members."""
    models = run.read(MODELS)
    kinds = {column.name: column.type for column in ENSEMBLE_MODELS.columns}
    for name in MEMBERS:
        models = models.withColumn(name, F.lit(None).cast(kinds[name]))
    if not _recorded_ensembles(run):
        return models
    return models.unionByName(run.read(ENSEMBLE_MODELS).select(models.columns))


def model_labels(run: Run) -> list[str]:
    """Return the labels of the learners that `all_models` has rows of, but for baselines."""
    trained = [entry.label for entry in recorded_training(run).learners]
    return [*trained, *_recorded_ensembles(run)]


def members_of(run: Run) -> list[str]:
    """Return the labels of the ensembles of which every user has the members."""
    found = _recorded_ensembles(run)
    return [label for label, entry in found.items() if entry.stores_members]


def status_of(run: Run, label: str) -> Mapping[str, int]:
    """Return how many users have each status with this learner."""
    if label in _recorded_ensembles(run):
        return run.facts(UserEnsembleFacts).status[label]
    return run.facts(TrainFacts).status[label]


def recorded_ensemble(run: Run) -> EnsembleConfig | None:
    """Return the settings that the run's ensembles were learned with."""
    record = run.record("ensemble")
    if record is None:
        return None
    settings: EnsembleConfig = convert(EnsembleConfig, record["settings"], "ensemble")
    return settings


def ensemble_input(run: Run) -> str | None:
    """Return what tells the ensembles of every user from others; None without."""
    record: dict[str, Any] = run.record("ensemble") or {}
    return record["fingerprint"] if _recorded_ensembles(run) else None


def _recorded_ensembles(run: Run) -> dict[str, EnsembleLearnerConfig]:
    settings = recorded_ensemble(run)
    return {} if settings is None else user_ensembles(settings)
