"""DataFrames that executors keep as long as somebody needs them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame


class Caches:
    """What one fit has asked executors to keep."""

    def __init__(self) -> None:
        self._kept: list[DataFrame] = []

    def keep(self, frame: DataFrame) -> DataFrame:
        """Keep a DataFrame once it is computed; return it."""
        self._kept.append(frame.persist())
        return frame

    def drop(self, frame: DataFrame) -> None:
        """Free one DataFrame."""
        self._kept = [kept for kept in self._kept if kept is not frame]
        frame.unpersist()

    def release(self) -> None:
        """Free all of them."""
        _unpersist(self._kept)
        self._kept = []

    @contextmanager
    def released_on_failure(self) -> Iterator[None]:
        """Free all of them if the block of code is left by an error or an interrupt."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def live_as_long_as(self, owner: object) -> None:
        """Free all of them when `owner` is garbage."""
        weakref.finalize(owner, _release_later, self._kept).atexit = False


def _release_later(frames: list[DataFrame]) -> None:
    # Python collects garbage in the middle of anything, a call of the JVM too
    threading.Thread(target=_unpersist, args=(frames,), daemon=True).start()


def _unpersist(frames: list[DataFrame]) -> None:
    for frame in frames:
        try:
            frame.unpersist()
        except (Py4JError, PySparkException, OSError, AttributeError):
            return  # the session is over, and with it what it kept
