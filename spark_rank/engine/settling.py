"""Spares the garbage collector what a worker has loaded once and for all.

Spark's daemon collects garbage after every task. Modules and compiled functions are some hundred
thousand objects that never become garbage; to go over them takes longer than a small task does.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

from pyspark import TaskContext

_settled: set[str] = set()

Arguments = ParamSpec("Arguments")
Batch = TypeVar("Batch")


def settling(work: Callable[Arguments, Iterator[Batch]]) -> Callable[Arguments, Iterator[Batch]]:
    """Let what a task's work has loaded be passed over from its first end on.

    Once for every kind of work, and not after each task: what becomes garbage later is collected.
    """

    @wraps(work)
    def settled(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Iterator[Batch]:
        yield from work(*args, **kwargs)
        if work.__qualname__ not in _settled and TaskContext.get() is not None:
            _settled.add(work.__qualname__)
            gc.collect()
            gc.freeze()

    return settled
