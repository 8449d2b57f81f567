"""What the driver does when users have ended Python workers: the same work again, with care."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark_rank.errors import TooManyFailuresError
from spark_rank.events import emit

T = TypeVar("T")

# what Spark says of a worker that died, and of one whose memory did not suffice
_SIGNS = re.compile(r"Python worker exited unexpectedly|SystemExit|(?<!OutOf)MemoryError")
_HOPELESS = re.compile(r"TooManyCrashesError: (.+)")


def isolating_on_crash(work: Callable[[bool], T], stage: str, what: str) -> T:
    """Return what `work(False)` returns; if workers have died of it, `work(True)`.

    `work` is told whether to isolate users; `what` says what is made again.
    """
    try:
        return work(False)
    except (Py4JJavaError, PySparkException) as error:
        _check_hope(error, stage)
        if not workers_died(error):
            raise
    text = (
        f"a Python worker died; {what} again, users in processes of their own to find the culprit"
    )
    emit("worker_died", text, stage=stage, level="warning")
    try:
        return work(True)
    except (Py4JJavaError, PySparkException) as error:
        _check_hope(error, stage)
        raise


def _check_hope(error: Exception, stage: str) -> None:
    """Raise `TooManyFailuresError` if so many users crashed that it cannot be the users."""
    found = _HOPELESS.search(str(error))
    if found is not None:
        raise TooManyFailuresError(
            f"{stage}: {found[1]}: look for what is wrong with the machine or the installed "
            "packages, and start the same command again"
        ) from None


def workers_died(error: Exception) -> bool:
    """Tell whether a Spark job failed because Python workers died or had too little memory."""
    return _SIGNS.search(str(error)) is not None
