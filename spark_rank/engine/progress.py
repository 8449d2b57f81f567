"""Says what is going on: one line per stage, and the share of tasks done while it runs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TextIO

from pyspark.sql import SparkSession

_TERMINAL_INTERVAL = 0.3
_LOG_INTERVAL = 10.0


class Progress:
    """Follows the Spark jobs of one stage and prints to `stream` (stderr by default)."""

    def __init__(self, spark: SparkSession, stage: str, stream: TextIO | None = None) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._stage = stage
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._done = threading.Event()
        # a line is drawn whole, and none after the closing one
        self._drawing = threading.Lock()
        self._thread = threading.Thread(target=self._follow, name="progress", daemon=True)
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        self._print(f"[{self._stage}] ...")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        self._thread.join(timeout=5.0)

    def seconds(self) -> float:
        """Return the time since the stage began."""
        return time.monotonic() - self._started

    def finish(self, message: str) -> None:
        """Print the stage's closing line; from then on nothing is drawn."""
        self._stop()
        print(f"[{self._stage}] {message}", file=self._stream, flush=True)

    def _follow(self) -> None:
        interval = _TERMINAL_INTERVAL if self._terminal else _LOG_INTERVAL
        while not self._done.wait(interval):
            done, total = self._tasks()
            if total:
                text = f"[{self._stage}] {done}/{total} tasks, {self.seconds():.0f} s"
                with self._drawing:
                    if not self._done.is_set():
                        self._print(text)

    def _stop(self) -> None:
        with self._drawing:
            self._done.set()
            self._clear()

    def _tasks(self) -> tuple[int, int]:
        done = total = 0
        for stage_id in self._tracker.getActiveStageIds():
            info = self._tracker.getStageInfo(stage_id)
            if info is not None:
                done += info.numCompletedTasks
                total += info.numTasks
        return done, total

    def _print(self, text: str) -> None:
        if self._terminal:
            self._stream.write(f"\r\x1b[K{text}")
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def _clear(self) -> None:
        if self._terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


@contextmanager
def job_description(spark: SparkSession, text: str) -> Iterator[None]:
    """Name the Spark jobs of a block of code, as the UI and the event log show them."""
    context = spark.sparkContext
    context.setJobDescription(text)
    try:
        yield
    finally:
        context.setJobDescription(None)  # type: ignore[arg-type] # None takes it away
