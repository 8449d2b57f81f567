"""Repeats work whose Python workers died, this time with every user isolated."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark_rank.errors import TooManyFailuresError
from spark_rank.events import emit

T = TypeVar("T")

# Spark's messages for a worker that died, and for one that ran out of memory
_SIGNS = re.compile(r"Python worker exited unexpectedly|SystemExit|(?<!OutOf)MemoryError")
_HOPELESS = re.compile(r"TooManyCrashesError: (.+)")


def isolating_on_crash(work: Callable[[bool], T], stage: str, what: str) -> T:
    """Return `work(False)`; if its Python workers die, return `work(True)`.

    The argument of `work` says whether to isolate users. `what` names the work in the warning.
    """
    try:
        return work(False)
    except (Py4JJavaError, PySparkException) as error:
        _check_hope(error, stage)
        if not workers_died(error):
            raise
    text = f"a Python worker died; computing {what} again, each user in a process of its own"
    emit("worker_died", text, stage=stage, level="warning")
    try:
        return work(True)
    except (Py4JJavaError, PySparkException) as error:
        _check_hope(error, stage)
        raise


def _check_hope(error: Exception, stage: str) -> None:
    """Raise `TooManyFailuresError` if so many users crashed that users cannot be the cause."""
    match = _HOPELESS.search(str(error))
    if match is not None:
        raise TooManyFailuresError(
            f"{stage}: {match[1]}: check the machine and the installed packages, then start the "
            "same command again"
        ) from None


def workers_died(error: Exception) -> bool:
    """Tell whether a Spark job failed because Python workers died or had too little memory."""
    return _SIGNS.search(str(error)) is not None
