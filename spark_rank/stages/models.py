"""All models of a run: those of `train`, and those of `ensemble` if there are some."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame

from spark_rank.reader.recorded import recorded_ensembles
from spark_rank.session.session import runtime_setting
from spark_rank.store.run import Run
from spark_rank.tables.contracts import ENSEMBLE_MODELS, MODELS

# the columns of an ensemble's row that `models` does not have
MEMBERS = ("n_members", "members", "member_votes")
# members of a user may be half a megabyte
_BATCH_OF_MEMBERS = str(64 * 2**20)


def all_models(run: Run) -> DataFrame:
    """Return a row per user and learner; if there are ensembles, with the columns of members."""
    models = run.read(MODELS)
    if not recorded_ensembles(run):
        return models
    columns = [*models.columns, *MEMBERS]
    ensembles = run.read(ENSEMBLE_MODELS).select(*columns)
    return models.unionByName(ensembles, allowMissingColumns=True).select(*columns)


@contextmanager
def batches_of_models(run: Run) -> Iterator[None]:
    """Limit batches of rows by their bytes, for a block of code, if models have members."""
    if not members_of(run):
        yield
        return
    with runtime_setting(
        run.spark, "spark.sql.execution.arrow.maxBytesPerBatch", _BATCH_OF_MEMBERS
    ):
        yield


def members_of(run: Run) -> list[str]:
    """Return the labels of the ensembles that store the members of every user."""
    ensembles = recorded_ensembles(run)
    return [label for label, entry in ensembles.items() if entry.stores_members]


def ensemble_input(run: Run) -> str | None:
    """Return the fingerprint of the ensembles of users; None without them."""
    record: dict[str, Any] = run.record("ensemble") or {}
    return record["fingerprint"] if recorded_ensembles(run) else None
