"""Spark's log lines about failed tasks: kept in a file, and shown with unexpected errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_rank.errors import SparkRankError

FILE = "spark.log"
# the system property by which log4j2.properties finds the file
PROPERTY = "spark_rank.held"
_MOST = 20_000


@contextmanager
def shown_with_errors(file: Path) -> Iterator[None]:
    """Add the lines logged meanwhile to an unexpected error; our own errors name their cause."""
    start = file.stat().st_size if file.exists() else 0
    try:
        yield
    except SparkRankError:
        raise
    except Exception as error:
        text = _since(file, start)
        if text:
            error.add_note(f"Spark's log of its tasks:\n{text}")
        raise


def _since(file: Path, start: int) -> str:
    if not file.exists():
        return ""
    logged = file.read_bytes()[start:]
    left_out = "(...)\n" if len(logged) > _MOST else ""
    return left_out + logged[-_MOST:].decode(errors="replace").strip()
