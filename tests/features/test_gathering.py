"""Rows of a feature matrix, against NumPy's own indexing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spark_rank.features.gathering import gathered_rows

MATRIX = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)


@pytest.mark.parametrize("items", [[], [3], [6, 0, 0, 2]])
@pytest.mark.parametrize("width", [0, 5])
def test_rows_are_those_that_are_asked_for(items: list[int], width: int, tmp_path: Path) -> None:
    chosen = np.array(items, dtype=np.int32)
    np.save(tmp_path / "matrix.npy", MATRIX[:, :width])
    mapped = np.load(tmp_path / "matrix.npy", mmap_mode="r")
    for matrix in (MATRIX[:, :width], mapped):
        found = gathered_rows(matrix, chosen)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, MATRIX[chosen, :width])


@pytest.mark.parametrize("items", [[7], [0, -1]])
def test_what_is_no_item_is_refused(items: list[int]) -> None:
    with pytest.raises(IndexError, match="from 0 to 6"):
        gathered_rows(MATRIX, np.array(items, dtype=np.int32))
