"""Packed columns are unpacked unchanged, and take few bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.data.packing import (
    pack_integers,
    pack_ratings,
    pack_strings,
    unpack_integers,
    unpack_ratings,
    unpack_strings,
)

LONG = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.one_of(LONG, st.integers(-9, 9), st.integers(0, 9).map(lambda d: d * 86_400))))
def test_integers_survive(values: list[int]) -> None:
    packed = pack_integers(np.array(values, np.int64))
    assert unpack_integers(packed).tolist() == values


@given(st.lists(st.one_of(st.floats(), st.integers(1, 5).map(float))))
def test_ratings_survive_to_the_last_bit(values: list[float]) -> None:
    given = np.array(values, np.float64)
    assert unpack_ratings(pack_ratings(given)).tobytes() == given.tobytes()


@given(st.lists(st.text()))
def test_texts_survive(values: list[str]) -> None:
    assert unpack_strings(pack_strings(pa.array(values, pa.string()))).to_pylist() == values


@pytest.mark.parametrize(
    ("values", "bytes_each"),
    [
        (np.arange(200), 1),
        (np.arange(10**12, 10**12 + 60_000), 2),
        (86_400 * np.arange(-2_000, 2_000), 2),
        (np.array([0, 2**40] * 50), 8),
    ],
)
def test_a_number_takes_what_its_span_needs(values: np.ndarray, bytes_each: int) -> None:
    assert len(pack_integers(values)) <= 20 + bytes_each * len(values)
