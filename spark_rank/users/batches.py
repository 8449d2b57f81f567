"""Converts Arrow batches to NumPy and back: list columns are flat arrays with ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def ragged(column: pa.ListArray) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return a list column's values end to end, and the ends of its lists (with a leading 0).

    A null list counts as empty.
    """
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return column.flatten().to_numpy(zero_copy_only=False), ends


def build_batch(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows as a batch of exactly `schema`; a missing value is null."""
    named = set().union(*rows)
    columns = []
    for field in schema:
        if field.name not in named:
            columns.append(pa.nulls(len(rows), field.type))
            continue
        values = [row.get(field.name) for row in rows]
        if pa.types.is_list(field.type):
            columns.append(_lists(values, field.type))
        elif pa.types.is_binary(field.type) and len(rows) == 1:
            columns.append(_one_binary(values[0]))
        else:
            columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _one_binary(value: bytes | None) -> pa.BinaryArray:
    """Return a column of one value without copying it: some values have megabytes."""
    if value is None:
        return pa.nulls(1, pa.binary())
    ends = pa.py_buffer(np.array([0, len(value)], dtype=np.int32))
    return pa.BinaryArray.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(value)])


def _lists(values: Sequence[Any], list_type: pa.ListType) -> pa.ListArray:
    """Build a list column from arrays or None, without a Python object per element."""
    present = [value for value in values if value is not None]
    if list_type.value_type == pa.string():
        flat = pa.concat_arrays(present) if present else pa.array([], pa.string())
    else:
        numbers = np.concatenate(present) if present else np.empty(0)
        flat = pa.array(numbers, list_type.value_type)
    lengths = [0 if value is None else len(value) for value in values]
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    missing = np.array([value is None for value in values], dtype=bool)
    offsets = pa.array(ends, pa.int32(), mask=np.append(missing, False))
    return pa.ListArray.from_arrays(offsets, flat, type=list_type)
