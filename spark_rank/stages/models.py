"""All models of a run: those of `train`, and those of `ensemble` if there are some."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.reader.recorded import recorded_ensembles
from spark_rank.store.run import Run
from spark_rank.tables.contracts import ENSEMBLE_MODELS, MODELS

# the columns of a model row that `models` does not have
MEMBERS = ("n_members", "members", "member_votes")


def all_models(run: Run) -> DataFrame:
    """Return a row per user and learner, ensembles included, with the columns of members."""
    models = run.read(MODELS)
    kinds = {column.name: column.type for column in ENSEMBLE_MODELS.columns}
    for name in MEMBERS:
        models = models.withColumn(name, F.lit(None).cast(kinds[name]))
    if not recorded_ensembles(run):
        return models
    return models.unionByName(run.read(ENSEMBLE_MODELS).select(models.columns))


def members_of(run: Run) -> list[str]:
    """Return the labels of the ensembles that store the members of every user."""
    ensembles = recorded_ensembles(run)
    return [label for label, entry in ensembles.items() if entry.stores_members]


def ensemble_input(run: Run) -> str | None:
    """Return the fingerprint of the ensembles of users; None without them."""
    record: dict[str, Any] = run.record("ensemble") or {}
    return record["fingerprint"] if recorded_ensembles(run) else None
