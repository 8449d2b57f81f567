"""Feature files are mapped and verified, and refused if they have changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spark_rank.features.files import FeatureFileError, FeatureFiles, open_files, write_files
from spark_rank.features.pool import ReviewerPool, id_keys
from spark_rank.records.facts import as_record, read_facts
from spark_rank.records.features import FeatureFacts

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)
OFFSET = np.linspace(-1, 1, 4)
PRIOR = np.ones((6, 3), dtype=np.float32)
IDS = ["a", "007", "ü", ""]


def as_files(record: dict[str, Any]) -> FeatureFiles:
    facts = {"files": record, "squared_radius": 1.0}
    return read_facts(FeatureFacts, {"facts": facts}, "r").files


def test_what_is_written_is_what_is_mapped(tmp_path: Path) -> None:
    files = write_files(tmp_path, MATRIX, OFFSET, PRIOR, IDS)
    opened = open_files(files, str(tmp_path))
    assert isinstance(opened.matrix.base, np.memmap)
    np.testing.assert_array_equal(opened.matrix, MATRIX)
    np.testing.assert_array_equal(opened.offset, OFFSET)
    np.testing.assert_array_equal(opened.prior, PRIOR)
    assert opened.item_ids.to_pylist() == IDS
    assert as_files(as_record(files)) == files


def test_a_pool_is_mapped_with_the_rest(tmp_path: Path) -> None:
    pool = ReviewerPool(
        ends=np.array([0, 2, 3]),
        items=np.array([1, 3, 0], dtype=np.int32),
        ratings=np.array([1.5, -1.0, 0.5], dtype=np.float32),
        missing=np.array([0.25, -2.0], dtype=np.float32),
        users=np.array([8, 9], dtype=np.int32),
        keys=id_keys(["u", "v"]),
        size=2,
        seed=2**62,
    )
    files = write_files(tmp_path, MATRIX[:, :0], OFFSET, PRIOR[:0, :0], IDS, pool)
    assert as_files(json.loads(json.dumps(as_record(files)))) == files
    opened = open_files(files, str(tmp_path))
    assert opened.pool is not None
    assert isinstance(opened.pool.ratings.base, np.memmap)
    assert (opened.pool.size, opened.pool.seed) == (2, 2**62)
    for name in ("ends", "items", "ratings", "missing", "users", "keys"):
        np.testing.assert_array_equal(getattr(opened.pool, name), getattr(pool, name))
    items = np.array([3, 0, 2], dtype=np.int32)
    reviewers = opened.reviewers(7, "somebody")
    assert reviewers is not None
    np.testing.assert_array_equal(
        opened.rows(items, reviewers), [[-1.0, -2.0], [0.25, 0.5], [0.25, -2.0]]
    )
    assert opened.expected_weights(items) is None
    with pytest.raises(ValueError, match="pass the user's reviewers"):
        opened.rows(items)
    path = tmp_path / files.pool.ratings.name  # type: ignore[union-attr]
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    open_files.cache_clear()
    with pytest.raises(FeatureFileError, match=r"ratings-\w+\.npy does not match"):
        open_files(files, str(tmp_path))


def test_shared_features_need_no_reviewers(tmp_path: Path) -> None:
    opened = open_files(write_files(tmp_path, MATRIX, OFFSET, PRIOR, IDS), str(tmp_path))
    assert opened.reviewers(0, "a") is None
    items = np.array([2, 0, 2], dtype=np.int32)
    np.testing.assert_array_equal(opened.rows(items), MATRIX[items].astype(float))


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
    with pytest.raises(
        FeatureFileError, match=f"{files.offset.name} is missing on .*, in {tmp_path}"
    ):
        open_files(files, str(tmp_path))


class Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("exploded"),)


def test_no_pickle_is_loaded_whatever_the_checksum_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = write_files(tmp_path, np.array([Bomb()], dtype=object), OFFSET, PRIOR, IDS)
    with pytest.raises(ValueError, match="Python objects|allow_pickle"):
        open_files(files, str(tmp_path))
    assert not (tmp_path / "exploded").exists()
