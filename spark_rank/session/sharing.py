"""Shares values, and files to map into memory, from the driver with all workers.

A session of Spark Connect has no `SparkContext`. There a value travels with every task, and files
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
    """A value that workers have too: Spark's broadcast, or an object with the same attribute."""

    @property
    def value(self) -> T_co:
        """Return the value."""


@dataclass(frozen=True)
class Carried(Generic[T]):
    """A value that travels with every task."""

    value: T


def share(spark: SparkSession, value: T) -> Shared[T]:
    """Return the value in a form that reaches the workers."""
    return Carried(value) if is_remote() else spark.sparkContext.broadcast(value)


def share_file(spark: SparkSession, path: Path) -> None:
    """Move a local file to the session's folder, and add it to every node by its name.

    Spark also sends an added file to every executor that starts later, even if it is not needed
    there. So the file must exist as long as the session, as the session's own folder does.
    """
    shared = Path(folder_of_files()) / path.name
    shutil.move(path, shared)
    if is_remote():
        spark.addArtifacts(str(shared), file=True)
    else:
        spark.sparkContext.addFile(shared.as_uri())


def folder_of_files() -> str:
    """Return the folder with the shared files on this node."""
    if is_remote() and TaskContext.get() is None:
        return _client_folder()
    return str(SparkFiles.getRootDirectory())


@cache
def _client_folder() -> str:
    """Return the folder in which a client of Spark Connect keeps the files that it shares."""
    folder = tempfile.mkdtemp(prefix="spark_rank-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
