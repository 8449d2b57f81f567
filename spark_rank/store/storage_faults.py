"""Faults of disks and files, which come as traces of the JVM, told in one line with a remedy."""

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
    """Raise what is known to be a fault of a disk or a file as the error that says so."""
    try:
        yield
    except (Py4JJavaError, PySparkException, OSError) as error:
        found = explanation(str(error), store)
        if found is None:
            raise
        raise found from None


def explanation(said: str, store: str) -> SparkRankError | None:
    """Return the error that an exception's text stands for; None if it is none of these."""
    feature_file = _FEATURE_FILE.search(said)
    if feature_file is not None:
        return ContractError(
            f"{feature_file[1]}: if `spark-rank runs verify` finds it changed in the run, delete "
            f"the run's manifest/features.json {_AGAIN}; if not, just start the command again"
        )
    full = _line_with(_FULL, said)
    if full is not None:
        return StorageError(
            f"a disk is full ({full}): make room in {store}, or where spark.local.dir is, {_AGAIN}"
        )
    closed = _line_with(_CLOSED, said)
    if closed is not None:
        return StorageError(
            f"cannot be written or read ({closed}): make {store} writable for this user {_AGAIN}"
        )
    return None


def _line_with(signs: str, said: str) -> str | None:
    """Return the first line of a trace that has one of the signs."""
    lines = (line.removeprefix("Caused by").strip(" :\t") for line in said.splitlines())
    return next((line for line in lines if re.search(signs, line)), None)
