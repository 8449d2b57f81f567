"""Cached DataFrames that are freed when nothing needs them any more."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame


class Caches:
    """The DataFrames that one fit caches on the executors."""

    def __init__(self) -> None:
        self._kept: list[DataFrame] = []

    def keep(self, frame: DataFrame) -> DataFrame:
        """Cache a DataFrame from its first computation on; return it."""
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
        """Free all of them if the block of code ends with an error or an interrupt."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def live_as_long_as(self, owner: object) -> None:
        """Free all of them when `owner` is garbage-collected."""
        weakref.finalize(owner, _release_later, self._kept).atexit = False


def _release_later(frames: list[DataFrame]) -> None:
    # in a thread of its own: garbage collection may interrupt a call of the JVM
    threading.Thread(target=_unpersist, args=(frames,), daemon=True).start()


def _unpersist(frames: list[DataFrame]) -> None:
    for frame in frames:
        try:
            frame.unpersist()
        except (Py4JError, PySparkException, OSError, AttributeError):
            return  # the session has ended, and its caches with it
