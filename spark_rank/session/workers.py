"""Set-up and clean-up around the work of Spark's Python workers."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

# more objects than a task leaves behind, and fewer than this package's modules have
_MANY = 20_000

Work = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def by_workers(frame: DataFrame, work: Work, schema: str) -> DataFrame:
    """Apply `work` to the Arrow batches of every partition; `schema` is the result's, as DDL."""
    return frame.mapInArrow(partial(at_work, work=work), schema)


def at_work(batches: Iterator[pa.RecordBatch], work: Work) -> Iterator[pa.RecordBatch]:
    """Yield the results of `work`, with set-up before and clean-up after it."""
    end_quietly()
    yield from work(batches)
    settle()


def is_retried() -> bool:
    """Tell whether this worker retries a task that has failed before."""
    task = TaskContext.get()
    return task is not None and task.attemptNumber() > 0


def end_quietly() -> None:
    """Let a worker end silently when Spark closes its socket.

    Spark closes it after an idle minute and when the session ends. Otherwise Python would print a
    stack trace among the lines that are meant for people.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def settle() -> None:
    """Exclude permanently loaded objects from garbage collection.

    Spark's daemon collects after every task. Modules and compiled functions are a hundred thousand
    objects that never become garbage, and scanning them takes longer than a small task.
    """
    if len(gc.get_objects()) > _MANY:
        gc.collect()
        gc.freeze()
