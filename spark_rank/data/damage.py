"""Tells of a damaged input file in one line, where Spark tells of a task that failed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark_rank.errors import InputDataError

_FILE = re.compile(r"Encountered error while reading file (\S+?)\.? ")
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+): (.*)$", re.MULTILINE)


@contextmanager
def damaged_files_are_named(own: str) -> Iterator[None]:
    """Turn Spark's failure to read a file into `InputDataError`, but not of files below `own`."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        found = _FILE.search(text)
        if found is None or _bare(found[1]).startswith(_bare(own)):
            raise
        raise InputDataError(f"{found[1]}: is damaged and cannot be read{_cause(text)}") from None


def _bare(path: str) -> str:
    return re.sub("^file:/+", "/", path)


def _cause(text: str) -> str:
    """Return the innermost reason that the JVM gives."""
    causes = [f"{kind}: {said}" for kind, said in _CAUSE.findall(text)]
    return f" ({causes[-1].strip()})" if causes else ""
