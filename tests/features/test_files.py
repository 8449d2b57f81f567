"""Feature files are mapped, verified, and refused when they are not what was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spark_rank.features.files import FeatureFileError, FeatureFiles, open_files, write_files

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)
OFFSET = np.linspace(-1, 1, 4)
PRIOR = np.ones((6, 3), dtype=np.float32)
IDS = ["a", "007", "ü", ""]


def test_what_is_written_is_what_is_mapped(tmp_path: Path) -> None:
    files = write_files(tmp_path, MATRIX, OFFSET, PRIOR, IDS)
    opened = open_files(files, str(tmp_path))
    assert isinstance(opened.matrix, np.memmap)
    np.testing.assert_array_equal(opened.matrix, MATRIX)
    np.testing.assert_array_equal(opened.offset, OFFSET)
    np.testing.assert_array_equal(opened.prior, PRIOR)
    assert opened.item_ids.to_pylist() == IDS
    assert FeatureFiles.from_record(files.to_record()) == files


def test_same_content_same_names(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    assert write_files(tmp_path, MATRIX, OFFSET, PRIOR, IDS) == write_files(
        tmp_path / "b", MATRIX, OFFSET, PRIOR, IDS
    )


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    files = write_files(tmp_path, MATRIX, OFFSET, PRIOR, IDS)
    path = tmp_path / files.matrix.name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(FeatureFileError, match="does not match its checksum"):
        open_files(files, str(tmp_path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    files = write_files(tmp_path, MATRIX, OFFSET, PRIOR, IDS)
    (tmp_path / files.offset.name).unlink()
    with pytest.raises(FeatureFileError, match=f"{files.offset.name} is missing on this node"):
        open_files(files, str(tmp_path))
