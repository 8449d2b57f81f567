"""What surrounds all work that Spark's Python workers do."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

# more than any task leaves behind, and less than this package's modules are
_MANY = 20_000

Work = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def by_workers(frame: DataFrame, work: Work, schema: str) -> DataFrame:
    """Return what `work` makes of the Arrow batches of every partition, under a DDL schema."""
    return frame.mapInArrow(partial(at_work, work=work), schema)


def at_work(batches: Iterator[pa.RecordBatch], work: Work) -> Iterator[pa.RecordBatch]:
    """Yield what `work` makes of the batches, as a good guest in Spark's worker."""
    end_quietly()
    yield from work(batches)
    settle()


def is_retried() -> bool:
    """Tell whether this worker does a task again that has failed before."""
    task = TaskContext.get()
    return task is not None and task.attemptNumber() > 0


def end_quietly() -> None:
    """Let a worker that Spark has hung up on end without a word.

    Of a local socket that is closed, as after an idle minute or when the session ends, Python would
    otherwise tell with a stack trace, among the lines that are meant for people.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def settle() -> None:
    """Spare the garbage collector what has been loaded once and for all.

    Spark's daemon collects after every task. Modules and compiled functions are a hundred thousand
    objects that never become garbage, and to go over them takes longer than a small task.
    """
    if len(gc.get_objects()) > _MANY:
        gc.collect()
        gc.freeze()
