"""Estimates what learning a user's model costs: for plans, and to start with the heaviest users."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from spark_rank.learners.registry import learner_class


class AskedLearner(Protocol):
    """A learner by name with its hyper-parameters, and a grid to choose others from."""

    @property
    def learner(self) -> str:
        """Return the learner's name."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """Return the hyper-parameters that are set."""
        ...

    @property
    def grid(self) -> Mapping[str, Sequence[Any]]:
        """Return the values to choose from."""
        ...

    @property
    def selection(self) -> str:
        """Return how they are chosen; ``sample``: once for all users, on a sample."""
        ...


def kernel_of(asked: AskedLearner) -> str:
    """Return the learner's kernel; if the grid has several, the first that is not linear."""
    kernels = asked.grid.get("kernel", [asked.params.get("kernel", "linear")])
    return next((kernel for kernel in kernels if kernel != "linear"), "linear")


def model_cost(
    asked: AskedLearner, n_train: float, width: int, *, most_kernel: int, landmarks: int
) -> float:
    """Return about how many core seconds one user's model takes, with its choice from the grid.

    With more than `most_kernel` ratings a kernel learner uses `landmarks`. Trying a grid point
    costs about as much as learning with it.
    """
    first = {name: values[0] for name, values in asked.grid.items()}
    params = {**first, **asked.params, "kernel": kernel_of(asked)}
    if params["kernel"] != "linear" and n_train > most_kernel:
        n_train = math.sqrt(n_train * min(landmarks, n_train))
    tried = math.prod(len(values) for values in asked.grid.values()) if asked.grid else 0
    fits = 1 if asked.selection == "sample" else 1 + tried
    return fits * learner_class(asked.learner).cost(params, n_train, width)
