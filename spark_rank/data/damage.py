"""Reports a damaged input file in one line, in place of Spark's failed task."""

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
def damaged_files_are_named(run_root: str) -> Iterator[None]:
    """Turn Spark's failure to read a file into `InputDataError`, but not below `run_root`."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        match = _FILE.search(text)
        if match is None or _without_scheme(match[1]).startswith(_without_scheme(run_root)):
            raise
        raise InputDataError(f"{match[1]}: is damaged and cannot be read{_cause(text)}") from None


def _without_scheme(path: str) -> str:
    return re.sub("^file:/+", "/", path)


def _cause(text: str) -> str:
    """Return the innermost cause in the JVM's trace."""
    causes = [f"{exception}: {message}" for exception, message in _CAUSE.findall(text)]
    return f" ({causes[-1].strip()})" if causes else ""
