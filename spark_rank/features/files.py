"""Feature files that workers map into memory: written once, named by their checksum, verified."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import SparkFiles


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
class FeatureFiles:
    """The files of one run's features."""

    matrix: MappedFile
    offset: MappedFile
    prior: MappedFile
    item_ids: MappedFile

    def all(self) -> tuple[MappedFile, ...]:
        """Return every file."""
        return self.matrix, self.offset, self.prior, self.item_ids

    def to_record(self) -> dict[str, Any]:
        """Return a plain form for the manifest."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: dict[str, dict[str, str]]) -> FeatureFiles:
        """Rebuild from the manifest."""
        return cls(**{part: MappedFile.from_record(file) for part, file in record.items()})


@dataclass(frozen=True)
class ItemFeatures:
    """The opened files: items × d features, an offset and an id per item; all memory-mapped.

    `prior` tells what to expect of a user who rated the items J, before his or her ratings are
    looked at: weights ``Σ_J prior_j / √|J| + prior_{−2} + prior_{−1} log |J|`` on the features,
    so it has two rows more than there are items; no rows where nothing is expected.
    """

    matrix: NDArray[np.float32]
    offset: NDArray[np.float64]
    prior: NDArray[np.float32]
    item_ids: pa.StringArray

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
) -> FeatureFiles:
    """Write the files into a local folder under names that hold their checksums."""

    def save_ids(path: Path) -> None:
        batch = pa.record_batch({"item_id": pa.array(item_ids, pa.string())})
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)

    return FeatureFiles(
        _publish(folder, "matrix", ".npy", lambda path: np.save(path, matrix)),
        _publish(folder, "offset", ".npy", lambda path: np.save(path, offset)),
        _publish(folder, "prior", ".npy", lambda path: np.save(path, prior)),
        _publish(folder, "item_ids", ".arrow", save_ids),
    )


def open_distributed(files: FeatureFiles) -> ItemFeatures:
    """Map the files that Spark distributed to this node (`SparkContext.addFile`)."""
    return open_files(files, SparkFiles.getRootDirectory())


@lru_cache(maxsize=2)
def open_files(files: FeatureFiles, folder: str) -> ItemFeatures:
    """Map the files in `folder`, once per process, after checking their checksums."""
    paths = {}
    for part in files.all():
        path = Path(folder) / part.name
        if not path.exists():
            raise FeatureFileError(f"feature file {part.name} is missing on this node")
        if file_checksum(path) != part.sha256:
            raise FeatureFileError(f"feature file {part.name} does not match its checksum")
        paths[part] = path
    with pa.memory_map(str(paths[files.item_ids])) as source:
        item_ids = pa.ipc.open_file(source).get_batch(0).column("item_id")
    return ItemFeatures(
        np.load(paths[files.matrix], mmap_mode="r"),
        np.load(paths[files.offset], mmap_mode="r"),
        np.load(paths[files.prior], mmap_mode="r"),
        item_ids,
    )


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _publish(folder: Path, stem: str, suffix: str, save: Callable[[Path], None]) -> MappedFile:
    unnamed = folder / f"{stem}{suffix}"
    save(unnamed)
    checksum = file_checksum(unnamed)
    name = f"{stem}-{checksum[:16]}{suffix}"
    unnamed.rename(folder / name)
    return MappedFile(name, checksum)
