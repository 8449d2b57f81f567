"""Users with the one model that makes their lists, and what their blocks tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_rank.users.bucket_pieces import (
    Selection,
    blocks_and_places,
    by_bucket,
    models_schema,
)
from spark_rank.users.learning import FAILED
from spark_rank.users.stored_models import SCORING_COLUMNS

_MODEL_COLUMNS = ("user_id", "learner", "status", "reason", *SCORING_COLUMNS)
MODELS_SCHEMA = models_schema(_MODEL_COLUMNS)
_BLOCK_COLUMNS = ("items", "bucket")
# what a user has in the end: a model, and what the block tells
WANTED_COLUMNS = ("user_id", "status", "reason", *SCORING_COLUMNS, *_BLOCK_COLUMNS)


@dataclass(frozen=True)
class Asked:
    """Whose models are asked for: a learner's, and where that failed those of another."""

    learner: str
    substitute: str | None
    buckets: tuple[int, ...] = ()

    @property
    def selection(self) -> Selection:
        """Return which models are needed."""
        others = () if self.substitute is None else (self.substitute,)
        return Selection((self.learner, *others), self.buckets, _MODEL_COLUMNS)


def users_with_models(
    batches: Iterator[pa.RecordBatch], asked: Asked, users: int
) -> Iterator[pa.RecordBatch]:
    """Turn pieces and files of blocks into batches of at most so many users with both.

    They have `WANTED_COLUMNS`, and come in the order of the blocks.
    """
    for pieces, files in by_bucket(batches, _MODEL_COLUMNS):
        models = scoring_models(pieces, asked)
        for file in files:
            for blocks, (places,) in blocks_and_places(file, _BLOCK_COLUMNS, [models], users):
                found = with_models(blocks, models, places)
                if len(found):
                    yield found


def scoring_models(models: pa.Table, asked: Asked) -> pa.Table:
    """Return one model for every user: where the learner failed, that of the substitute.

    Status and reason stay the failure's. Without any model the offset alone is what there is.
    """
    own = models.filter(pc.equal(models.column("learner"), asked.learner))
    if asked.substitute is None:
        return own.combine_chunks()
    failed = pc.equal(own.column("status"), FAILED)
    failures = own.filter(failed)
    others = models.filter(
        pc.and_(
            pc.equal(models.column("learner"), asked.substitute),
            pc.not_equal(models.column("status"), FAILED),
        )
    )
    places = pc.index_in(failures.column("user_id"), others.column("user_id"))
    for name in SCORING_COLUMNS:
        values = others.column(name).take(places)
        if name == "offset_weight":
            values = values.fill_null(1.0)
        failures = failures.set_column(failures.schema.get_field_index(name), name, values)
    return pa.concat_tables([own.filter(pc.invert(failed)), failures]).combine_chunks()


def with_models(blocks: pa.RecordBatch, models: pa.Table, places: pa.Int32Array) -> pa.RecordBatch:
    """Return the users of some blocks who have a model, with both; `places` are the models'."""
    taken = models.take(places.drop_null())
    known = blocks.filter(places.is_valid())
    arrays = [
        known.column(name) if name in _BLOCK_COLUMNS else taken.column(name).combine_chunks()
        for name in WANTED_COLUMNS
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(WANTED_COLUMNS))
