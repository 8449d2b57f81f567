"""What the driver does when users have ended Python workers: the same work again, with care."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark_rank.events import emit

T = TypeVar("T")

# what Spark says of a worker that died, and of one whose memory did not suffice
_SIGNS = re.compile(r"Python worker exited unexpectedly|SystemExit|(?<!OutOf)MemoryError")


def again_with_care(work: Callable[[bool], T], stage: str, what: str) -> T:
    """Return what `work(False)` returns; if workers have died of it, `work(True)`.

    `work` is told whether to isolate users; `what` says what is made again.
    """
    try:
        return work(False)
    except (Py4JJavaError, PySparkException) as error:
        if not workers_died(error):
            raise
    text = (
        f"a Python worker died; {what} again, users in processes of their own to find the culprit"
    )
    emit("worker_died", text, stage=stage, level="warning")
    return work(True)


def workers_died(error: Exception) -> bool:
    """Tell whether a Spark job failed because Python workers died or had too little memory."""
    return _SIGNS.search(str(error)) is not None
