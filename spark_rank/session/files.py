"""What a store needs of a file system, whoever serves it; a local disk needs no JVM."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# where Hadoop may be told that paths without a scheme are not local
_HADOOP_SETTINGS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_DEFAULT_FILE_SYSTEM = ("spark.hadoop.fs.defaultFS", "spark.hadoop.fs.default.name")


@dataclass(frozen=True)
class FileInfo:
    """What a file system knows of a file without opening it."""

    path: str
    size: int
    modified_ms: int


class Files(Protocol):
    """The operations on a store's files; hidden names begin with ``_`` or ``.``."""

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory is there."""

    def is_directory(self, path: str) -> bool:
        """Tell whether a directory is there."""

    def names(self, path: str) -> list[str]:
        """Return the names of all that is in a directory, hidden ones too; [] without it."""

    def below(self, path: str, *, hidden: bool = False) -> list[FileInfo]:
        """Return every file in a directory and those below it, sorted by path; [] without it."""

    def glob(self, pattern: str) -> list[FileInfo]:
        """Return every file that a path, directory or glob stands for, sorted by path."""

    def read_text(self, path: str) -> str:
        """Return a small UTF-8 file, or raise `OSError`."""

    def head(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes of a file, or all there are."""

    def tail(self, info: FileInfo, size: int) -> bytes:
        """Return the last `size` bytes of a file, or all there are."""

    def sha256(self, path: str) -> str:
        """Return the checksum of a file's bytes."""

    def download(self, path: str, local: Path) -> None:
        """Copy a file to a local path."""

    def qualified(self, path: str) -> str:
        """Return the path with its file system and from the root, as any process can use it."""

    def write_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file at once: a reader sees the old one or the new one."""

    def create_text(self, path: str, text: str) -> bool:
        """Write a small UTF-8 file unless it is there; tell whether it was this call that did."""

    def delete(self, path: str) -> None:
        """Delete a file or a whole directory, if it is there."""


def on_local_disk(path: str, settings: Mapping[str, str]) -> bool:
    """Tell whether a path is one of this machine's disks, whatever Hadoop is set to."""
    if path.startswith("file:"):
        return True
    elsewhere = any(name in settings for name in _DEFAULT_FILE_SYSTEM)
    return not (":/" in path or elsewhere or any(name in os.environ for name in _HADOOP_SETTINGS))


@contextmanager
def store_files(name: str, store: str, settings: Mapping[str, str]) -> Iterator[Files]:
    """Yield what serves a store's files; unless they are local, a Spark session called `name`."""
    if on_local_disk(store, settings):
        from spark_rank.session.local_files import LocalFiles

        yield LocalFiles()
        return
    # who asks a local store waits for none of this
    from spark_rank.session.filesystem import Filesystem
    from spark_rank.session.session import on_this_machine, spark_session

    with spark_session(name, on_this_machine(settings)) as spark:
        yield Filesystem(spark)
