"""Turns faults of disks and files, which arrive as JVM stack traces, into one line of advice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark_rank.errors import ContractError, SparkRankError, StorageError

_AGAIN = "and start the same command again: it goes on with what is missing"
_FULL = "No space left on device|Disk quota exceeded"
_CLOSED = (
    "Read-only file system|ReadOnlyFileSystemException|AccessDeniedException|Permission denied"
)
_FEATURE_FILE = re.compile(r"FeatureFileError: (.+)")


@contextmanager
def storage_faults_told(store: str) -> Iterator[None]:
    """Replace exceptions that are known faults of a disk or a file by an error that says so."""
    try:
        yield
    except (Py4JJavaError, PySparkException, OSError) as error:
        explained = explanation(str(error), store)
        if explained is None:
            raise
        raise explained from None


def explanation(text: str, store: str) -> SparkRankError | None:
    """Return the error that explains an exception's text; None if it is no known fault."""
    feature_file = _FEATURE_FILE.search(text)
    if feature_file is not None:
        return ContractError(
            f"{feature_file[1]}: if `spark-rank runs verify` reports it as changed, delete the "
            f"run's manifest/features.json {_AGAIN}; if not, just start the command again"
        )
    full = _line_with(_FULL, text)
    if full is not None:
        return StorageError(
            f"a disk is full ({full}): free space in {store} or in spark.local.dir, {_AGAIN}"
        )
    closed = _line_with(_CLOSED, text)
    if closed is not None:
        return StorageError(
            f"cannot be written or read ({closed}): make {store} writable for this user {_AGAIN}"
        )
    return None


def _line_with(pattern: str, text: str) -> str | None:
    """Return the first line of a stack trace that matches a pattern."""
    lines = (line.removeprefix("Caused by").strip(" :\t") for line in text.splitlines())
    return next((line for line in lines if re.search(pattern, line)), None)
