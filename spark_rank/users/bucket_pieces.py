"""Models and blocks of the same users, brought to one task as bytes, bucket by bucket.

Were they rows, Spark would take both apart number by number, and send every list through a shuffle
twice; that takes longer than all that is done with them. Here the models that are asked for become
pieces, the rows of one bucket as one value of bytes, and blocks are the files that they are. Spark
only brings what has the same bucket to the same task, in any order; the task takes users in the
order of the blocks, so that no byte depends on how it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from spark_rank.store.worker_files import CONTENT, decoded
from spark_rank.tables.contract import Column, arrow_schema, ddl
from spark_rank.tables.contracts import ENSEMBLE_MODELS

PIECES = (
    Column("bucket", "int", "hash bucket of the users"),
    Column("path", "string", "of a file of blocks; null: a piece of models"),
    Column(CONTENT, "binary", "the file, or the models as an Arrow stream"),
)
PIECES_DDL = ddl(PIECES)
_PIECE_SCHEMA = arrow_schema(PIECES)

_KINDS = {each.name: each for each in ENSEMBLE_MODELS.columns}
# columns that only models of ensembles have
_OPTIONAL = ("n_members", "members", "member_votes")
# models that are decoded at once: pieces are few, and mostly of some megabytes
_ROWS = 2**14


@dataclass(frozen=True)
class Selection:
    """Which models become pieces: of which learners and buckets, and which of their columns."""

    learners: tuple[str, ...]
    buckets: tuple[int, ...]
    columns: tuple[str, ...]


@dataclass
class Held:
    """What a task has been given of a bucket: pieces of models, and files of blocks by path."""

    models: list[pa.RecordBatch] = field(default_factory=list)
    blocks: dict[str, pa.RecordBatch] = field(default_factory=dict)


def models_schema(columns: Sequence[str]) -> pa.Schema:
    """Return some columns of models, ensembles among them."""
    return arrow_schema(tuple(_KINDS[name] for name in columns))


def model_pieces(
    batches: Iterator[pa.RecordBatch], selection: Selection
) -> Iterator[pa.RecordBatch]:
    """Turn whole files of models into pieces of the models that are asked for.

    What `DataFrame.mapInArrow` calls.
    """
    learners, buckets = pa.array(selection.learners), pa.array(selection.buckets, pa.int32())
    schema = models_schema(selection.columns)
    optional = {name: schema.field(name).type for name in _OPTIONAL if name in selection.columns}
    columns = tuple(dict.fromkeys((*selection.columns, "learner", "bucket")))
    for part in decoded(batches, columns, _ROWS, optional):
        wanted = pc.and_(
            pc.is_in(part.column("learner"), learners), pc.is_in(part.column("bucket"), buckets)
        )
        models = part.filter(wanted)
        for bucket in pc.unique(models.column("bucket")):
            own = models.filter(pc.equal(models.column("bucket"), bucket))
            yield _piece(bucket.as_py(), own.select(selection.columns).cast(schema))


def _piece(bucket: int, models: pa.RecordBatch) -> pa.RecordBatch:
    """Return a row with the models but for the columns that none of them has."""
    there = [name for name in models.schema.names if models.column(name).null_count < len(models)]
    models = models.select(there)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, models.schema) as writer:
        writer.write_batch(models)
    row = {"bucket": bucket, "path": None, CONTENT: sink.getvalue().to_pybytes()}
    return pa.RecordBatch.from_pylist([row], _PIECE_SCHEMA)


def _models(piece: pa.BinaryScalar, schema: pa.Schema) -> pa.RecordBatch:
    found = pa.ipc.open_stream(piece.as_buffer()).read_next_batch()
    columns = [
        found.column(each.name) if each.name in found.schema.names
        else pa.nulls(len(found), each.type)
        for each in schema
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def by_bucket(
    batches: Iterator[pa.RecordBatch], columns: Sequence[str]
) -> Iterator[tuple[pa.Table, list[pa.RecordBatch]]]:
    """Yield the models of every bucket, with these columns, and its files of blocks, in order.

    Takes pieces and files in any order. Holds a bucket's models and its blocks as they are stored.
    """
    schema = models_schema(columns)
    buckets: dict[int, Held] = {}
    for batch in batches:
        numbers, paths = batch.column("bucket").to_pylist(), batch.column("path").to_pylist()
        for row, (bucket, path) in enumerate(zip(numbers, paths, strict=True)):
            own = buckets.setdefault(bucket, Held())
            if path is None:
                own.models.append(_models(batch.column(CONTENT)[row], schema))
            else:
                own.blocks[path] = batch.slice(row, 1)
    for _, held in sorted(buckets.items()):
        files = [file for _, file in sorted(held.blocks.items())]
        yield pa.Table.from_batches(held.models, schema), files


def blocks_and_places(
    file: pa.RecordBatch, columns: Sequence[str], tables: Sequence[pa.Table], users: int
) -> Iterator[tuple[pa.RecordBatch, list[pa.Int32Array]]]:
    """Yield some columns of one file of blocks, at most so many users at a time.

    With them come the places of these users in every table, by ``user_id``; null: it has them not.
    """
    ids = [part.column("user_id") for part in decoded(iter([file]), ("user_id",), _ROWS)]
    # all at once: for every look-up a table's users are hashed anew
    places = [pc.index_in(pa.chunked_array(ids, pa.string()), table.column("user_id"))
              for table in tables]  # fmt: skip
    done = 0
    for blocks in decoded(iter([file]), columns, users):
        yield blocks, [each.slice(done, len(blocks)).combine_chunks() for each in places]
        done += len(blocks)
