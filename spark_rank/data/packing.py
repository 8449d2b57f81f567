"""Packs columns as bytes, so that Spark moves a few large values instead of many rows."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

_HEAD = struct.Struct("<qqB")
_DAY = 86_400
# unsigned: values are stored minus their minimum, and no rating or time overflows
_WIDTHS = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64))
_WHOLE, _DOUBLE = b"w", b"d"


def pack_integers(values: IntArray) -> bytes:
    """Return the numbers as bytes, as narrow as their range allows; whole days as days."""
    if not len(values):
        return _HEAD.pack(0, 1, 1)
    least = int(values.min())
    above = (values - least).astype(np.uint64)
    unit = _DAY if above.any() and not (above % np.uint64(_DAY)).any() else 1
    above //= np.uint64(unit)
    width = next(w for w in _WIDTHS if int(above.max()) <= np.iinfo(w).max)
    return _HEAD.pack(least, unit, width.itemsize) + above.astype(width).tobytes()


def unpack_integers(data: bytes | memoryview) -> IntArray:
    """Return the numbers that `pack_integers` packed."""
    least, unit, size = _HEAD.unpack_from(data)
    width = next(w for w in _WIDTHS if w.itemsize == size)
    return np.frombuffer(data, width, offset=_HEAD.size).astype(np.int64) * unit + least


def pack_ratings(values: NDArray[np.float64]) -> bytes:
    """Return doubles as bytes: as integers if all are small and whole, else bit by bit."""
    whole = np.abs(values) < 2**31
    whole &= (values == np.rint(values)) & ~((values == 0) & np.signbit(values))
    if whole.all():
        return _WHOLE + pack_integers(values.astype(np.int64))
    return _DOUBLE + np.ascontiguousarray(values, np.float64).tobytes()


def unpack_ratings(data: bytes | memoryview) -> NDArray[np.float64]:
    """Return the ratings that `pack_ratings` packed."""
    if data[:1] == _WHOLE:
        return unpack_integers(data[1:]).astype(np.float64)
    return np.frombuffer(data, np.float64, offset=1)


def pack_strings(values: pa.StringArray) -> bytes:
    """Return strings as one Arrow stream."""
    batch = pa.record_batch([values], names=["text"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()


def unpack_strings(data: bytes | pa.Buffer) -> pa.StringArray:
    """Return the strings that `pack_strings` packed."""
    return pa.ipc.open_stream(data).read_next_batch().column(0)
