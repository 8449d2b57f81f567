"""Feature files that workers map into memory: written once, named by their checksum, verified."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import SparkFiles

from spark_rank.features.pool import ReviewerPool


@dataclass(frozen=True)
class MappedFile:
    """A file's name, which holds the beginning of its checksum, and the whole checksum."""

    name: str
    sha256: str

    @classmethod
    def from_record(cls, record: dict[str, str]) -> MappedFile:
        """Rebuild from what `asdict` put into a manifest."""
        return cls(record["name"], record["sha256"])


@dataclass(frozen=True)
class PoolFiles:
    """The files of a `ReviewerPool`, an array each, and its two numbers."""

    ends: MappedFile
    items: MappedFile
    ratings: MappedFile
    missing: MappedFile
    users: MappedFile
    keys: MappedFile
    size: int
    seed: int

    def arrays(self) -> dict[str, MappedFile]:
        """Return the files by the names of the arrays."""
        return {name: getattr(self, name) for name in POOL_ARRAYS}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> PoolFiles:
        """Rebuild from the manifest."""
        arrays = {name: MappedFile.from_record(record[name]) for name in POOL_ARRAYS}
        return cls(**arrays, size=record["size"], seed=record["seed"])


POOL_ARRAYS = tuple(field.name for field in fields(PoolFiles) if field.name not in ("size", "seed"))


@dataclass(frozen=True)
class FeatureFiles:
    """The files of one run's features."""

    matrix: MappedFile
    offset: MappedFile
    prior: MappedFile
    item_ids: MappedFile
    pool: PoolFiles | None = None

    def all(self) -> tuple[MappedFile, ...]:
        """Return every file."""
        of_pool = self.pool.arrays().values() if self.pool is not None else ()
        return self.matrix, self.offset, self.prior, self.item_ids, *of_pool

    def to_record(self) -> dict[str, Any]:
        """Return a plain form for the manifest."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> FeatureFiles:
        """Rebuild from the manifest."""
        shared = {
            part: MappedFile.from_record(file) for part, file in record.items() if part != "pool"
        }
        pool = record.get("pool")
        return cls(**shared, pool=None if pool is None else PoolFiles.from_record(pool))


@dataclass(frozen=True)
class ItemFeatures:
    """The opened files: features, an offset and an id per item; all memory-mapped.

    `matrix` has the features that all users share, items × d; with a `pool` of reviewers it has
    no columns, and every user gets the ratings of some of them.

    `prior` tells what to expect of a user who rated the items J, before his or her ratings are
    looked at: weights ``Σ_J prior_j / √|J| + prior_{−2} + prior_{−1} log |J|`` on the features,
    so it has two rows more than there are items; no rows where nothing is expected.
    """

    matrix: NDArray[np.float32]
    offset: NDArray[np.float64]
    prior: NDArray[np.float32]
    item_ids: pa.StringArray
    pool: ReviewerPool | None = None

    def reviewers(self, user: int, user_id: str) -> NDArray[np.int32] | None:
        """Return the numbers of the reviewers that are this user's features; None: all share."""
        return None if self.pool is None else self.pool.chosen_for(user, user_id)

    def rows(
        self, items: NDArray[np.int32], reviewers: NDArray[np.int32] | None = None
    ) -> NDArray[np.float64]:
        """Return the feature vectors of `items`, for a user with these `reviewers`."""
        if self.pool is None:
            return self.matrix[items].astype(np.float64)
        if reviewers is None:
            raise ValueError("items look different to every user: name the user's reviewers")
        return self.pool.gather(items, reviewers)

    def expected_weights(self, items: NDArray[np.int32]) -> NDArray[np.float64] | None:
        """Return the weights to expect of a user who rated `items`; None without a prior."""
        if len(self.prior) == 0:
            return None
        size = max(len(items), 1)
        weights = self.prior[items].sum(axis=0, dtype=np.float64) / np.sqrt(size)
        weights += self.prior[-2]
        weights += self.prior[-1] * np.log(size)
        return np.asarray(weights)


class FeatureFileError(RuntimeError):
    """A feature file on this node is not the one that the features stage wrote."""


def write_files(
    folder: Path,
    matrix: NDArray[np.float32],
    offset: NDArray[np.float64],
    prior: NDArray[np.float32],
    item_ids: list[str],
    pool: ReviewerPool | None = None,
) -> FeatureFiles:
    """Write the files into a local folder under names that hold their checksums."""
    return FeatureFiles(
        _publish_array(folder, "matrix", matrix),
        _publish_array(folder, "offset", offset),
        _publish_array(folder, "prior", prior),
        _publish(folder, "item_ids", ".arrow", lambda path: _save_ids(path, item_ids)),
        None if pool is None else _write_pool(folder, pool),
    )


def open_distributed(files: FeatureFiles) -> ItemFeatures:
    """Map the files that Spark distributed to this node (`SparkContext.addFile`)."""
    return open_files(files, SparkFiles.getRootDirectory())


@lru_cache(maxsize=2)
def open_files(files: FeatureFiles, folder: str) -> ItemFeatures:
    """Map the files in `folder`, once per process, after checking their checksums."""
    paths = {file: _verified(file, Path(folder)) for file in files.all()}
    with pa.memory_map(str(paths[files.item_ids])) as source:
        item_ids = pa.ipc.open_file(source).get_batch(0).column("item_id")
    pool = None
    if files.pool is not None:
        # compiled functions take plain arrays: views of the mapped ones
        arrays: dict[str, Any] = {
            name: np.asarray(np.load(paths[file], mmap_mode="r", allow_pickle=False))
            for name, file in files.pool.arrays().items()
        }
        pool = ReviewerPool(**arrays, size=files.pool.size, seed=files.pool.seed)
    return ItemFeatures(
        np.load(paths[files.matrix], mmap_mode="r", allow_pickle=False),
        np.load(paths[files.offset], mmap_mode="r", allow_pickle=False),
        np.load(paths[files.prior], mmap_mode="r", allow_pickle=False),
        item_ids,
        pool,
    )


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _write_pool(folder: Path, pool: ReviewerPool) -> PoolFiles:
    arrays = {name: _publish_array(folder, name, getattr(pool, name)) for name in POOL_ARRAYS}
    return PoolFiles(**arrays, size=pool.size, seed=pool.seed)


def _save_ids(path: Path, item_ids: list[str]) -> None:
    batch = pa.record_batch({"item_id": pa.array(item_ids, pa.string())})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _publish_array(folder: Path, stem: str, array: NDArray[Any]) -> MappedFile:
    return _publish(folder, stem, ".npy", lambda path: np.save(path, array))


def _publish(folder: Path, stem: str, suffix: str, save: Callable[[Path], None]) -> MappedFile:
    unnamed = folder / f"{stem}{suffix}"
    save(unnamed)
    checksum = file_checksum(unnamed)
    name = f"{stem}-{checksum[:16]}{suffix}"
    unnamed.rename(folder / name)
    return MappedFile(name, checksum)


def _verified(file: MappedFile, folder: Path) -> Path:
    path = folder / file.name
    if not path.exists():
        raise FeatureFileError(f"feature file {file.name} is missing on this node")
    if file_checksum(path) != file.sha256:
        raise FeatureFileError(f"feature file {file.name} does not match its checksum")
    return path
