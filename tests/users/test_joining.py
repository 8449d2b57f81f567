"""Models and blocks brought together: against a plain look-up, however they were cut and dealt."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import ENSEMBLE_MODELS, MODELS
from spark_rank.users.bucket_pieces import model_pieces
from spark_rank.users.joining import (
    MODELS_SCHEMA,
    WANTED_COLUMNS,
    Asked,
    scoring_models,
    users_with_models,
)

STORED = arrow_schema(MODELS.columns)
WITH_MEMBERS = arrow_schema(ENSEMBLE_MODELS.columns)
BLOCK = pa.schema([("user_id", pa.string()), ("items", pa.list_(pa.int32()))])
FIRST, SECOND = "one", "item_offset"

Row = dict[str, Any]


def as_file(rows: Sequence[Row], schema: pa.Schema, group: int = 3) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(list(rows), schema), sink, row_group_size=group)
    return bytes(sink.getvalue().to_pybytes())


def model(user: int, bucket: int, learner: str = FIRST, **more: Any) -> Row:
    own = {"user_id": f"u{user}", "learner": learner, "status": "learned", "bucket": bucket,
           "intercept": float(user), "offset_weight": 1.0, "weights": [user, 0.5],
           "hyperparameters": "{}", "on_rating_scale": True}  # fmt: skip
    return {**own, **more}


def block(user: int) -> Row:
    return {"user_id": f"u{user}", "items": list(range(user % 4))}


def pieces_of(files: Sequence[bytes], asked: Asked) -> list[pa.RecordBatch]:
    contents = pa.record_batch({"content": pa.array(files, pa.binary())})
    return list(model_pieces(iter([contents]), asked.selection))


def block_file(bucket: int, path: str, rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.record_batch({
        "bucket": pa.array([bucket], pa.int32()), "path": pa.array([path]),
        "content": pa.array([as_file(rows, BLOCK)], pa.binary()),
    })  # fmt: skip


def together(
    parts: Sequence[pa.RecordBatch], asked: Asked, users: int = 2
) -> Iterator[pa.RecordBatch]:
    """Bring parts together as one task has them: in batches that have nothing to do with them."""
    schema = pa.schema([("bucket", pa.int32()), ("path", pa.string()), ("content", pa.binary())])
    whole = pa.Table.from_batches([part.cast(schema) for part in parts], schema)
    return users_with_models(iter(whole.combine_chunks().to_batches(max_chunksize=2)), asked, users)


@given(
    learned=st.sets(st.integers(0, 30), max_size=20),
    blocked=st.lists(st.integers(0, 30), unique=True, max_size=20),
    cuts=st.lists(st.integers(0, 20), max_size=3),
    order=st.randoms(use_true_random=False),
)
def test_every_user_with_a_model_comes_once_in_the_order_of_the_blocks(
    learned: set[int], blocked: list[int], cuts: list[int], order: Any
) -> None:
    asked = Asked(FIRST, None, (0, 1))
    rows = [
        row
        for user in learned
        for row in (model(user, user % 3), model(user, user % 3, SECOND, intercept=99.0))
    ]
    order.shuffle(rows)
    ends = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    files = [as_file(rows[a:b], STORED) for a, b in itertools.pairwise(ends)]
    parts = pieces_of(files, asked)
    for bucket in asked.buckets:
        own = [block(user) for user in blocked if user % 3 == bucket]
        half = len(own) // 2
        parts.append(block_file(bucket, "a", own[:half]))
        parts.append(block_file(bucket, "b", own[half:]))
    order.shuffle(parts)
    expected = [
        (f"u{user}", float(user), [user, 0.5], block(user)["items"], bucket)
        for bucket in asked.buckets
        for user in blocked
        if user % 3 == bucket and user in learned
    ]
    found = []
    for batch in together(parts, asked):
        assert batch.schema.names == list(WANTED_COLUMNS)
        assert 0 < len(batch) <= 2
        found += [(r["user_id"], r["intercept"], r["weights"], r["items"], r["bucket"])
                  for r in batch.to_pylist()]  # fmt: skip
    assert found == expected


def test_pieces_are_of_the_learners_and_buckets_that_are_asked_for() -> None:
    rows = [model(user, user % 4, label) for user in range(8) for label in (FIRST, SECOND, "two")]
    made = pieces_of([as_file(rows, STORED, 24)], Asked(FIRST, None, (1, 3)))
    assert {piece.column("bucket")[0].as_py() for piece in made} == {1, 3}
    assert all(piece.column("path").null_count == 1 for piece in made)
    contents = [pa.ipc.open_stream(piece.column("content")[0].as_buffer()) for piece in made]
    found = [row for stream in contents for row in stream.read_all().to_pylist()]
    assert {(row["user_id"], row["learner"]) for row in found} == {
        (f"u{user}", FIRST) for user in range(8) if user % 4 in (1, 3)
    }


def test_members_of_ensembles_come_along_and_others_have_none() -> None:
    members = model(5, 0, n_members=2, members=[0.25, 0.5], member_votes=[1, 2])
    files = [as_file([model(1, 0)], STORED), as_file([members], WITH_MEMBERS)]
    asked = Asked(FIRST, None, (0,))
    parts = [*pieces_of(files, asked), block_file(0, "a", [block(1), block(5)])]
    (batch,) = together(parts, asked)
    plain, of_ensemble = batch.to_pylist()
    assert (plain["n_members"], plain["members"], plain["member_votes"]) == (None, None, None)
    assert (of_ensemble["n_members"], of_ensemble["members"]) == (2, [0.25, 0.5])
    assert of_ensemble["member_votes"] == [1, 2]


def test_a_file_without_a_column_that_models_must_have_is_refused() -> None:
    without = as_file([model(1, 0)], STORED.remove(STORED.get_field_index("weights")))
    with pytest.raises(KeyError, match="weights"):
        pieces_of([without], Asked(FIRST, None, (0,)))


def test_a_failed_model_gives_way_to_the_substitute() -> None:
    nothing = dict.fromkeys(MODELS_SCHEMA.names)
    rows = [
        model(1, 0),
        {**nothing, "user_id": "u2", "learner": FIRST, "status": "failed", "reason": "numeric"},
        {**nothing, "user_id": "u3", "learner": FIRST, "status": "failed", "reason": "other"},
        model(1, 0, SECOND, intercept=9.0),
        model(2, 0, SECOND, intercept=2.5, weights=None),
        {**nothing, "user_id": "u3", "learner": SECOND, "status": "failed", "reason": "other"},
    ]
    models = pa.Table.from_pylist(
        [{name: row.get(name) for name in MODELS_SCHEMA.names} for row in rows], MODELS_SCHEMA
    )
    found = scoring_models(models, Asked(FIRST, SECOND))
    assert found.schema == MODELS_SCHEMA
    names = ("user_id", "status", "reason", "intercept", "offset_weight", "weights")
    assert [tuple(row[name] for name in names) for row in found.to_pylist()] == [
        ("u1", "learned", None, 1.0, 1.0, [1.0, 0.5]),
        ("u2", "failed", "numeric", 2.5, 1.0, None),
        # without any model the offset alone is what there is
        ("u3", "failed", "other", None, 1.0, None),
    ]
    own = scoring_models(models, Asked(FIRST, None))
    assert own.column("user_id").to_pylist() == ["u1", "u2", "u3"]
    assert own.column("intercept").to_pylist() == [1.0, None, None]
