"""The files of a stage with their sizes and checksums, as its record lists them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from spark_rank.session.files import FileInfo
from spark_rank.session.filesystem import Filesystem

# reads that wait for a network profit from more threads than there are cores
READERS = max(4, 2 * (os.cpu_count() or 1))


@dataclass(frozen=True)
class StoredFile:
    """What a record says of a file."""

    size: int
    sha256: str


Inventory = dict[str, StoredFile]


def take_inventory(files: Filesystem, folder: str) -> Inventory:
    """Return what is in a folder and below, by path from there; the JVM reads files in parallel."""
    found = files.below(folder)
    with ThreadPoolExecutor(READERS) as readers:
        checksums = list(readers.map(lambda info: files.sha256(info.path), found))
    return {
        relative(info, folder): StoredFile(info.size, checksum)
        for info, checksum in zip(found, checksums, strict=True)
    }


def is_unchanged(files: Filesystem, folder: str, expected: Inventory) -> bool:
    """Tell whether a folder has these files and no others, byte by byte.

    After the loss of a machine a file may have its size and not its content.
    """
    found = {relative(info, folder): info.size for info in files.below(folder)}
    if found != {path: file.size for path, file in expected.items()}:
        return False
    try:
        return take_inventory(files, folder) == expected
    except Py4JJavaError:  # a local disk's own checksums refuse to read it
        return False


def relative(info: FileInfo, folder: str) -> str:
    """Return a file's path from a folder above it; of the folder itself, if it is a file, ""."""
    return info.path.removeprefix(folder).lstrip("/")


def as_record(inventory: Mapping[str, StoredFile]) -> dict[str, dict[str, Any]]:
    """Return a plain form for the manifest."""
    return {path: asdict(file) for path, file in sorted(inventory.items())}


def from_record(record: Mapping[str, Mapping[str, Any]]) -> Inventory:
    """Rebuild from the manifest."""
    return {path: StoredFile(file["size"], file["sha256"]) for path, file in record.items()}
