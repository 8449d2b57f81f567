"""List columns become flat arrays and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.users.batches import build_batch, ragged

SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("numbers", pa.list_(pa.float32())),
        ("words", pa.list_(pa.string())),
    ]
)
lists = st.lists(st.none() | st.lists(st.integers(-9, 9), max_size=4), max_size=6)


@given(lists, st.integers(0, 3))
def test_there_and_back(values: list[list[int] | None], skip: int) -> None:
    rows: list[dict[str, Any]] = [
        {
            "name": str(i),
            "numbers": None if v is None else np.array(v, dtype=float),
            "words": None if v is None else pa.array([str(x) for x in v], pa.string()),
        }
        for i, v in enumerate(values)
    ]
    batch = build_batch(rows, SCHEMA)
    batch.validate(full=True)
    assert batch.column("numbers").to_pylist() == values
    assert batch.column("words").to_pylist() == [
        None if v is None else [str(x) for x in v] for v in values
    ]
    part = batch.slice(min(skip, len(values)))
    flat, ends = ragged(part.column("numbers"))
    pieces = [flat[a:b].tolist() for a, b in pairwise(ends)]
    assert pieces == [v or [] for v in values[skip:]]


def test_a_value_that_is_not_given_is_null() -> None:
    assert build_batch([{"name": "a"}], SCHEMA).to_pylist() == [
        {"name": "a", "numbers": None, "words": None}
    ]


@given(st.lists(st.none() | st.binary(max_size=9), min_size=1, max_size=3))
def test_bytes(values: list[bytes | None]) -> None:
    schema = pa.schema([("bytes", pa.binary())])
    batch = build_batch([{"bytes": value} for value in values], schema)
    batch.validate(full=True)
    assert batch.column("bytes").to_pylist() == values
