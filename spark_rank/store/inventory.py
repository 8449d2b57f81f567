"""The files of a stage, with the sizes and checksums that its record lists."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from spark_rank.session.files import FileInfo
from spark_rank.session.filesystem import Filesystem

# reads wait for the network, so more threads than cores are faster
READERS = max(4, 2 * (os.cpu_count() or 1))


@dataclass(frozen=True)
class StoredFile:
    """A file's size and checksum in a record."""

    size: int
    sha256: str


Inventory = dict[str, StoredFile]


def take_inventory(files: Filesystem, folder: str) -> Inventory:
    """Return the files in and below a folder, by relative path; the JVM reads them in parallel."""
    infos = files.below(folder)
    with ThreadPoolExecutor(READERS) as readers:
        checksums = list(readers.map(lambda info: files.sha256(info.path), infos))
    return {
        relative(info, folder): StoredFile(info.size, checksum)
        for info, checksum in zip(infos, checksums, strict=True)
    }


def is_unchanged(files: Filesystem, folder: str, expected: Inventory) -> bool:
    """Tell whether a folder has exactly these files, byte for byte.

    After the loss of a machine a file may have the right size and the wrong content.
    """
    sizes = {relative(info, folder): info.size for info in files.below(folder)}
    if sizes != {path: file.size for path, file in expected.items()}:
        return False
    try:
        return take_inventory(files, folder) == expected
    except Py4JJavaError:  # a local file that differs from Hadoop's own checksums
        return False


def relative(info: FileInfo, folder: str) -> str:
    """Return a file's path relative to a folder; "" if `folder` is the file itself."""
    return info.path.removeprefix(folder).lstrip("/")


def as_record(inventory: Mapping[str, StoredFile]) -> dict[str, dict[str, Any]]:
    """Return the inventory as the manifest stores it."""
    return {path: asdict(file) for path, file in sorted(inventory.items())}


def from_record(record: Mapping[str, Mapping[str, Any]]) -> Inventory:
    """Return the inventory that the manifest stores."""
    return {path: StoredFile(file["size"], file["sha256"]) for path, file in record.items()}
