"""Joins the users of a bucket with the one model that makes their lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import ENSEMBLE_MODELS
from spark_rank.users.held_out import in_order
from spark_rank.users.learning import FAILED
from spark_rank.users.stored_models import SCORING_COLUMNS

_MODEL_COLUMNS = ("user_id", "learner", "status", "reason", *SCORING_COLUMNS)
_KINDS = {each.name: each for each in ENSEMBLE_MODELS.columns}
MODELS_SCHEMA = arrow_schema(tuple(_KINDS[name] for name in _MODEL_COLUMNS))
_BLOCK_COLUMNS = ("items", "bucket")
# the columns after the join: the model's, and those of the block
WANTED_COLUMNS = ("user_id", "status", "reason", *SCORING_COLUMNS, *_BLOCK_COLUMNS)


@dataclass(frozen=True)
class ScoringLearner:
    """The learner whose models score, and the learner that replaces failed models, if any."""

    learner: str
    substitute: str | None

    @property
    def learners(self) -> tuple[str, ...]:
        """Return the labels of the learner and its substitute."""
        return (self.learner,) if self.substitute is None else (self.learner, self.substitute)


def users_with_models(
    blocks: pa.Table, models: pa.Table, scored_by: ScoringLearner, users: int
) -> Iterator[pa.RecordBatch]:
    """Yield the users of a bucket who have a model, with `WANTED_COLUMNS`, by user number."""
    user_models = scoring_models(models, scored_by)
    for batch in in_order(blocks, users):
        places = pc.index_in(batch.column("user_id"), user_models.column("user_id"))
        if places.null_count < len(places):
            yield with_models(batch, user_models, places)


def as_scoring(models: pa.Table) -> pa.Table:
    """Return the columns that scoring needs; columns of ensembles are null if they are missing."""
    names = set(models.column_names)
    columns = [
        models.column(field.name).cast(field.type) if field.name in names
        else pa.nulls(len(models), field.type)
        for field in MODELS_SCHEMA
    ]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=MODELS_SCHEMA)


def scoring_models(models: pa.Table, scored_by: ScoringLearner) -> pa.Table:
    """Return one model for every user: where the learner failed, that of the substitute.

    Status and reason stay those of the failure. Without a substitute's model the user is scored
    by the item offset alone.
    """
    learned = models.filter(pc.equal(models.column("learner"), scored_by.learner))
    if scored_by.substitute is None:
        return learned.combine_chunks()
    failed = pc.equal(learned.column("status"), FAILED)
    failures = learned.filter(failed)
    substitutes = models.filter(
        pc.and_(
            pc.equal(models.column("learner"), scored_by.substitute),
            pc.not_equal(models.column("status"), FAILED),
        )
    )
    places = pc.index_in(failures.column("user_id"), substitutes.column("user_id"))
    for name in SCORING_COLUMNS:
        values = substitutes.column(name).take(places)
        if name == "offset_weight":
            values = values.fill_null(1.0)
        failures = failures.set_column(failures.schema.get_field_index(name), name, values)
    return pa.concat_tables([learned.filter(pc.invert(failed)), failures]).combine_chunks()


def with_models(blocks: pa.RecordBatch, models: pa.Table, places: pa.Int32Array) -> pa.RecordBatch:
    """Return the users with a model: columns of block and model; `places` index `models`."""
    rows = models.take(places.drop_null())
    users = blocks.filter(places.is_valid())
    arrays = [
        users.column(name) if name in _BLOCK_COLUMNS else rows.column(name).combine_chunks()
        for name in WANTED_COLUMNS
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(WANTED_COLUMNS))
