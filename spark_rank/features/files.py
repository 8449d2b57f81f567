"""Writes feature files named by their checksums, and maps them into memory after a check."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.features.choice import Choice
from spark_rank.features.expected import expected_weights
from spark_rank.features.gathering import gathered_rows
from spark_rank.features.pool import ReviewerPool
from spark_rank.records.features import (
    POOL_ARRAYS,
    ChoiceFiles,
    FeatureFiles,
    MappedFile,
    PoolFiles,
)

if TYPE_CHECKING:  # these files are also read without Spark
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ItemFeatures:
    """The opened files: features, an offset and an id per item; all memory-mapped.

    `matrix` has the features that all users share, items × d. With a `pool` of reviewers it has
    no columns, and the features of a user are the ratings of some reviewers.

    `prior` gives the prior weights of a user who rated the items J, whatever the ratings:
    ``Σ_J prior_j / √|J| + prior_{−2} + prior_{−1} log |J|`` on the features. So it has two rows
    more than there are items; without a prior it has no rows. `choice` tells what users choose.
    """

    matrix: NDArray[np.float32]
    offset: NDArray[np.float64]
    prior: NDArray[np.float32]
    item_ids: pa.StringArray
    pool: ReviewerPool | None = None
    choice: Choice | None = None

    def reviewers(self, user: int, user_id: str) -> NDArray[np.int32] | None:
        """Return the numbers of this user's reviewers; None if all users share the features."""
        return None if self.pool is None else self.pool.chosen_for(user, user_id)

    def rows(
        self, items: NDArray[np.int32], reviewers: NDArray[np.int32] | None = None
    ) -> NDArray[np.float64]:
        """Return the feature vectors of `items` for a user with these `reviewers`."""
        if self.pool is None:
            return np.asarray(gathered_rows(self.matrix, items))
        if reviewers is None:
            raise ValueError("every user has other features: pass the user's reviewers")
        return self.pool.gather(items, reviewers)

    def expected_weights(self, items: NDArray[np.int32]) -> NDArray[np.float64] | None:
        """Return the prior weights of a user who rated `items`; None without a prior."""
        size = np.array([len(items)])
        weights = self.expected_of_users(items, np.array([0, len(items)]), size)
        return None if weights is None else np.asarray(weights[0])

    def expected_of_users(
        self, items: NDArray[np.int32], ends: NDArray[np.int64], n_train: NDArray[np.int64]
    ) -> NDArray[np.float64] | None:
        """Return a row of prior weights for every user; None without a prior.

        The items of user u begin at ends[u], and the first n_train[u] are for training.
        """
        if len(self.prior) == 0:
            return None
        if len(items) and not 0 <= items.min() <= items.max() < len(self.prior) - 2:
            raise IndexError("an item without features")  # compiled code does not check
        prior, rated = self.prior.view(), items.view()
        prior.flags.writeable = rated.flags.writeable = False  # one type for the compiler
        return np.asarray(expected_weights(prior, rated, ends, n_train))


class FeatureFileError(RuntimeError):
    """A feature file on this node is not the one that the features stage wrote."""


def write_files(
    folder: Path,
    matrix: NDArray[np.float32],
    offset: NDArray[np.float64],
    prior: NDArray[np.float32],
    item_ids: list[str],
    pool: ReviewerPool | None = None,
    choice: Choice | None = None,
) -> FeatureFiles:
    """Write the files to a local folder under names with their checksums."""
    return FeatureFiles(
        publish_array(folder, "matrix", matrix),
        publish_array(folder, "offset", offset),
        publish_array(folder, "prior", prior),
        _publish(folder, "item_ids", ".arrow", lambda path: _save_ids(path, item_ids)),
        None if pool is None else _write_pool(folder, pool),
        None if choice is None else _write_choice(folder, choice),
    )


def open_distributed(files: FeatureFiles) -> ItemFeatures:
    """Map the files that Spark distributed to this node."""
    return open_files(files, place_of_files())


def place_of_files() -> str:
    """Return the folder of this node with the files that Spark distributes."""
    from spark_rank.session.sharing import folder_of_files

    return folder_of_files()


@lru_cache(maxsize=2)
def open_files(files: FeatureFiles, folder: str) -> ItemFeatures:
    """Map the files in `folder`, once per process, after checking their checksums."""
    paths = {file: verified(file, Path(folder)) for file in files.all()}
    with pa.memory_map(str(paths[files.item_ids])) as source:
        item_ids = pa.ipc.open_file(source).get_batch(0).column("item_id")
    pool = None
    if files.pool is not None:
        arrays: dict[str, Any] = {
            name: _mapped(paths[file]) for name, file in files.pool.arrays().items()
        }
        pool = ReviewerPool(**arrays, size=files.pool.size, seed=files.pool.seed)
    return ItemFeatures(
        _mapped(paths[files.matrix]),
        _mapped(paths[files.offset]),
        _mapped(paths[files.prior]),
        item_ids,
        pool,
        None
        if files.choice is None
        else Choice(_mapped(paths[files.choice.decoder]), _mapped(paths[files.choice.encoder])),
    )


@lru_cache(maxsize=4)
def open_array(file: MappedFile, folder: str) -> NDArray[Any]:
    """Map one array of `folder`, once per process, after checking its checksum."""
    return _mapped(verified(file, Path(folder)))


def _mapped(path: Path) -> NDArray[Any]:
    """Map a file into memory as a plain array, which compiled functions need."""
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _write_pool(folder: Path, pool: ReviewerPool) -> PoolFiles:
    arrays = {name: publish_array(folder, name, getattr(pool, name)) for name in POOL_ARRAYS}
    return PoolFiles(**arrays, size=pool.size, seed=pool.seed)


def _write_choice(folder: Path, choice: Choice) -> ChoiceFiles:
    return ChoiceFiles(
        publish_array(folder, "choice_decoder", choice.decoder),
        publish_array(folder, "choice_encoder", choice.encoder),
    )


def _save_ids(path: Path, item_ids: list[str]) -> None:
    batch = pa.record_batch({"item_id": pa.array(item_ids, pa.string())})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def publish_array(folder: Path, stem: str, array: NDArray[Any]) -> MappedFile:
    """Write an array to a local folder under a name with its checksum."""
    return _publish(folder, stem, ".npy", lambda path: np.save(path, array))


def _publish(folder: Path, stem: str, suffix: str, save: Callable[[Path], None]) -> MappedFile:
    unnamed = folder / f"{stem}{suffix}"
    save(unnamed)
    checksum = file_checksum(unnamed)
    name = f"{stem}-{checksum[:16]}{suffix}"
    unnamed.rename(folder / name)
    return MappedFile(name, checksum)


def distribute_local(spark: SparkSession, folder: Path, files: Iterable[MappedFile]) -> None:
    """Send files of a local folder to every node of the session; they are moved from the folder."""
    from spark_rank.session.sharing import share_file

    for file in files:
        share_file(spark, folder / file.name)


def verified(file: MappedFile, folder: Path) -> Path:
    """Return the file's path on this node; raise `FeatureFileError` if it is missing or differs."""
    path = folder / file.name
    if not path.exists():
        raise FeatureFileError(f"feature file {file.name} is missing on {_here(folder)}")
    if file_checksum(path) != file.sha256:
        raise FeatureFileError(
            f"feature file {file.name} does not match its checksum on {_here(folder)}"
        )
    return path


def _here(folder: Path) -> str:
    return f"{socket.gethostname()}, in {folder.resolve()}"
