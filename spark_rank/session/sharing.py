"""What the driver hands to all workers: values, and files that they map into memory.

A session of Spark Connect has no `SparkContext`. There a value travels inside every task, and files
are artifacts of the session.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pyspark import SparkFiles, TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Shared(Protocol[T_co]):
    """A value that workers have, too: Spark's broadcast, or what looks like it."""

    @property
    def value(self) -> T_co:
        """Return the value."""


@dataclass(frozen=True)
class Carried(Generic[T]):
    """A value that every task brings along."""

    value: T


def share(spark: SparkSession, value: T) -> Shared[T]:
    """Return the value as workers take it."""
    return Carried(value) if is_remote() else spark.sparkContext.broadcast(value)


def share_file(spark: SparkSession, path: Path) -> None:
    """Move a local file to where every node that works for the session finds it by its name.

    Spark hands whatever was added to every executor that starts later too, also to one that has
    no use for it: the file has to stay as long as the session. The session's own folder does.
    """
    kept = Path(folder_of_files()) / path.name
    shutil.move(path, kept)
    if is_remote():
        spark.addArtifacts(str(kept), file=True)
    else:
        spark.sparkContext.addFile(kept.as_uri())


def folder_of_files() -> str:
    """Return the folder of this process's node that has the shared files."""
    if is_remote() and TaskContext.get() is None:
        return _client_folder()
    return str(SparkFiles.getRootDirectory())


@cache
def _client_folder() -> str:
    """Return a folder for the copies that a client of Spark Connect keeps of what it shares."""
    folder = tempfile.mkdtemp(prefix="spark_rank-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
