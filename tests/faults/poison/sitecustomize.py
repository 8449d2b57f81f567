"""A Python that starts with this module on its path ends itself when it learns certain users.

``POISON`` holds, as JSON, how each of them ends it: ``[[how, training ratings], …]``.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import resource
import signal
from typing import Any

import numpy as np

from spark_rank.learners import MPRank

_fit = MPRank.fit
_poisoned = {tuple(ratings): how for how, ratings in json.loads(os.environ["POISON"])}


def _segmentation_fault() -> None:
    faulthandler.disable()
    ctypes.string_at(0)


def _too_much_memory() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**36, before[1]))
    try:
        np.zeros(2**40)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


_WAYS = {
    "segmentation fault": _segmentation_fault,
    "exit": lambda: os._exit(7),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "too much memory": _too_much_memory,
}


def _poisoned_fit(self: MPRank, X: Any, y: Any, offset: Any = None) -> MPRank:
    how = _poisoned.get(tuple(y.tolist()))
    if how is not None:
        _WAYS[how]()
    return _fit(self, X, y, offset)


MPRank.fit = _poisoned_fit  # type: ignore[method-assign]
