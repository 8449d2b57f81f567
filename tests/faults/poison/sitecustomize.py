"""A Python that starts with this module on its path ends itself when it learns certain users.

``POISON`` holds, as JSON, how each of them ends it: ``[[how, training ratings], …]``.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
from typing import Any

import numpy as np

from spark_rank.learners import OAP, MPRank, SVRank

_poisoned = {tuple(ratings): how for how, ratings in json.loads(os.environ["POISON"])}


def _segmentation_fault() -> None:
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


def _held(ratings: tuple[float, ...]) -> int:
    """Return how many ratings `tune` holds back, with five folds."""
    return max(2, len(ratings) // 5)


def _poisoned_way(learn: Any) -> Any:
    def poisoned(self: Any, X: Any, y: Any, *more: Any, **named: Any) -> Any:
        learned = tuple(np.asarray(y).tolist())
        # tuning holds back the end of the training ratings
        how = next((how for own, how in _poisoned.items()
                    if own[: len(learned)] == learned and len(own) - len(learned) in (0, _held(own))
                    ), None)  # fmt: skip
        if how is not None:
            _WAYS[how]()
        return learn(self, X, y, *more, **named)

    return poisoned


# whole models, all values of C at once, members of an ensemble
MPRank.fit = _poisoned_way(MPRank.fit)  # type: ignore[method-assign]
SVRank.fit = _poisoned_way(SVRank.fit)  # type: ignore[method-assign]
MPRank.path = classmethod(_poisoned_way(MPRank.path.__func__))  # type: ignore[assignment,attr-defined]
OAP.train_members = _poisoned_way(OAP.train_members)  # type: ignore[method-assign]
