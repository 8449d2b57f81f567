"""Models and blocks of the same users, brought together by workers, bucket by bucket.

Were they rows, Spark would take both apart number by number, and send every list through a shuffle
twice; that takes longer than all that is done with them. Here the models that are asked for become
pieces, the rows of one bucket as one value of bytes, and blocks are the files that they are. Spark
only brings what has the same bucket to the same task, in any order; the task puts users in the
order of the blocks, so that no byte depends on how it came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from spark_rank.data.contracts import Column, arrow_schema, ddl
from spark_rank.data.tables import ENSEMBLE_MODELS
from spark_rank.engine.learning import FAILED
from spark_rank.engine.stored_models import SCORING_COLUMNS
from spark_rank.engine.worker_files import CONTENT, decoded

PIECES = (
    Column("bucket", "int", "hash bucket of the users"),
    Column("path", "string", "of a file of blocks; null: a piece of models"),
    Column(CONTENT, "binary", "the file, or the models as an Arrow stream"),
)
PIECES_DDL = ddl(PIECES)
_PIECE_SCHEMA = arrow_schema(PIECES)

_MODEL_COLUMNS = ("user_id", "learner", "status", "reason", *SCORING_COLUMNS)
_KINDS = {each.name: each for each in ENSEMBLE_MODELS.columns}
MODELS_SCHEMA = arrow_schema(tuple(_KINDS[name] for name in _MODEL_COLUMNS))
# of ensembles only
_OPTIONAL = {name: MODELS_SCHEMA.field(name).type
             for name in ("n_members", "members", "member_votes")}  # fmt: skip
_BLOCK_COLUMNS = ("items", "bucket")
# what a user has in the end: a model, and what the block tells
WANTED_COLUMNS = ("user_id", "status", "reason", *SCORING_COLUMNS, *_BLOCK_COLUMNS)
# models that are decoded at once: pieces are few and of some megabytes at most
_ROWS = 2**14


@dataclass(frozen=True)
class Asked:
    """Whose models are asked for: a learner's, and where that failed those of another."""

    learner: str
    substitute: str | None
    buckets: tuple[int, ...] = ()

    @property
    def learners(self) -> list[str]:
        """Return the labels of all whose models are needed."""
        return [self.learner] if self.substitute is None else [self.learner, self.substitute]


@dataclass
class _Held:
    """What a task has been given of a bucket: pieces of models, and files of blocks by path."""

    models: list[pa.RecordBatch] = field(default_factory=list)
    blocks: dict[str, pa.RecordBatch] = field(default_factory=dict)


def model_pieces(batches: Iterator[pa.RecordBatch], asked: Asked) -> Iterator[pa.RecordBatch]:
    """Turn whole files of models into pieces of the models that are asked for.

    What `DataFrame.mapInArrow` calls.
    """
    learners, buckets = pa.array(asked.learners), pa.array(asked.buckets, pa.int32())
    columns = (*_MODEL_COLUMNS, "bucket")
    for part in decoded(batches, columns, _ROWS, _OPTIONAL):
        wanted = pc.and_(
            pc.is_in(part.column("learner"), learners), pc.is_in(part.column("bucket"), buckets)
        )
        models = part.filter(wanted)
        for bucket in pc.unique(models.column("bucket")):
            own = models.filter(pc.equal(models.column("bucket"), bucket))
            yield _piece(bucket.as_py(), own.select(_MODEL_COLUMNS).cast(MODELS_SCHEMA))


def _piece(bucket: int, models: pa.RecordBatch) -> pa.RecordBatch:
    """Return a row with the models but for the columns that none of them has."""
    there = [name for name in models.schema.names if models.column(name).null_count < len(models)]
    models = models.select(there)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, models.schema) as writer:
        writer.write_batch(models)
    row = {"bucket": bucket, "path": None, CONTENT: sink.getvalue().to_pybytes()}
    return pa.RecordBatch.from_pylist([row], _PIECE_SCHEMA)


def _models(piece: pa.BinaryScalar) -> pa.RecordBatch:
    found = pa.ipc.open_stream(piece.as_buffer()).read_next_batch()
    columns = [
        found.column(each.name) if each.name in found.schema.names
        else pa.nulls(len(found), each.type)
        for each in MODELS_SCHEMA
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, schema=MODELS_SCHEMA)


def users_with_models(
    batches: Iterator[pa.RecordBatch], asked: Asked, users: int
) -> Iterator[pa.RecordBatch]:
    """Turn pieces and files of blocks into batches of at most so many users with both.

    They have `WANTED_COLUMNS`, and come in the order of the blocks. Holds a bucket's models and
    its blocks as they are stored.
    """
    for _, held in sorted(_by_bucket(batches).items()):
        models = scoring_models(pa.Table.from_batches(held.models, MODELS_SCHEMA), asked)
        for _, file in sorted(held.blocks.items()):
            yield from _of_file(file, models, users)


def _of_file(file: pa.RecordBatch, models: pa.Table, users: int) -> Iterator[pa.RecordBatch]:
    """Yield the users of one file of blocks who have a model, with both."""
    ids = [part.column("user_id") for part in decoded(iter([file]), ("user_id",), _ROWS)]
    # all at once: for every look-up the models' users are hashed anew
    places = pc.index_in(pa.chunked_array(ids, pa.string()), models.column("user_id"))
    done = 0
    for blocks in decoded(iter([file]), _BLOCK_COLUMNS, users):
        found = with_models(blocks, models, places.slice(done, len(blocks)).combine_chunks())
        done += len(blocks)
        if len(found):
            yield found


def _by_bucket(batches: Iterator[pa.RecordBatch]) -> dict[int, _Held]:
    held: dict[int, _Held] = {}
    for batch in batches:
        buckets, paths = batch.column("bucket").to_pylist(), batch.column("path").to_pylist()
        for row, (bucket, path) in enumerate(zip(buckets, paths, strict=True)):
            own = held.setdefault(bucket, _Held())
            if path is None:
                own.models.append(_models(batch.column(CONTENT)[row]))
            else:
                own.blocks[path] = batch.slice(row, 1)
    return held


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
