"""What Spark logged of tasks that failed: kept in a file, shown with errors that nobody foresaw."""

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
    """Add what has been logged meanwhile to an error that does not name its cause itself."""
    begun = file.stat().st_size if file.exists() else 0
    try:
        yield
    except SparkRankError:
        raise
    except Exception as error:
        text = _since(file, begun)
        if text:
            error.add_note(f"What Spark logged of its tasks:\n{text}")
        raise


def _since(file: Path, begun: int) -> str:
    if not file.exists():
        return ""
    logged = file.read_bytes()[begun:]
    left_out = "(...)\n" if len(logged) > _MOST else ""
    return left_out + logged[-_MOST:].decode(errors="replace").strip()
