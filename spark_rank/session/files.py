"""The operations that a store needs of a file system; on a local disk they need no JVM."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# configuration folders that may make Hadoop read paths without a scheme as not local
_HADOOP_SETTINGS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_DEFAULT_FILE_SYSTEM = ("spark.hadoop.fs.defaultFS", "spark.hadoop.fs.default.name")


@dataclass(frozen=True)
class FileInfo:
    """What a file system knows about a file without opening it."""

    path: str
    size: int
    modified_ms: int


class Files(Protocol):
    """The operations on a store's files; hidden names begin with ``_`` or ``.``."""

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory exists."""

    def is_directory(self, path: str) -> bool:
        """Tell whether a directory exists."""

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, hidden ones too; [] if there is no directory."""

    def below(self, path: str, *, hidden: bool = False) -> list[FileInfo]:
        """Return all files in and below a directory, sorted by path; [] if there is none."""

    def glob(self, pattern: str) -> list[FileInfo]:
        """Return all files that a path, directory or glob matches, sorted by path."""

    def read_text(self, path: str) -> str:
        """Return a small UTF-8 file, or raise `OSError`."""

    def head(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes of a file, or all if it is shorter."""

    def tail(self, info: FileInfo, size: int) -> bytes:
        """Return the last `size` bytes of a file, or all if it is shorter."""

    def sha256(self, path: str) -> str:
        """Return the checksum of a file's bytes."""

    def download(self, path: str, local: Path) -> None:
        """Copy a file to a local path."""

    def qualified(self, path: str) -> str:
        """Return the absolute path with its file system, which any process can use."""

    def write_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file atomically: a reader sees the old file or the new one."""

    def create_text(self, path: str, text: str) -> bool:
        """Write a small UTF-8 file unless it exists; tell whether this call wrote it."""

    def delete(self, path: str) -> None:
        """Delete a file or a whole directory, if it exists."""


def on_local_disk(path: str, settings: Mapping[str, str]) -> bool:
    """Tell whether a path is local; without a scheme it is, unless Hadoop is configured."""
    if path.startswith("file:"):
        return True
    is_configured = any(name in settings for name in _DEFAULT_FILE_SYSTEM)
    is_configured |= any(name in os.environ for name in _HADOOP_SETTINGS)
    return not (":/" in path or is_configured)


@contextmanager
def store_files(name: str, store: str, settings: Mapping[str, str]) -> Iterator[Files]:
    """Yield the access to a store's files; if not local, through a Spark session called `name`."""
    if on_local_disk(store, settings):
        from spark_rank.session.local_files import LocalFiles

        yield LocalFiles()
        return
    # imported here, because a local store needs none of this
    from spark_rank.session.filesystem import Filesystem
    from spark_rank.session.session import on_this_machine, spark_session

    with spark_session(name, on_this_machine(settings)) as spark:
        yield Filesystem(spark)
