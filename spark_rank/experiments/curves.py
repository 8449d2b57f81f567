"""Online curves as results: the running average loss at a fixed choice of rounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spark_rank.experiments.frame import Result
from spark_rank.learners.errors import NumericFailureError
from spark_rank.learners.perceptrons.online import OnlineLearner

_SHOWN = 60


def rounds_shown(n_rounds: int, shown: int = _SHOWN) -> NDArray[np.int64]:
    """Return at most `shown` rounds from 1 to `n_rounds`, including the last, denser at the start.

    They grow as squares, so that plots over rounds and over their logarithms look smooth.
    """
    if n_rounds <= shown:
        return np.arange(1, n_rounds + 1)
    steps = np.linspace(1.0, np.sqrt(n_rounds), shown) ** 2
    return np.unique(np.rint(steps).astype(np.int64))


def online_curve(
    averages: ArrayLike,
    method: str,
    metric: str,
    *,
    part: str = "all",
    repeat: int = 0,
    target: str | None = None,
) -> list[Result]:
    """Return the averages after the rounds shown; `averages` has one entry per round."""
    values: Sequence[float] = np.asarray(averages, dtype=np.float64)  # type: ignore[assignment]
    return [
        Result(method, metric, float(values[t - 1]), part, float(t), repeat, target)
        for t in rounds_shown(len(values)).tolist()
    ]


def learned_curve(
    learner: OnlineLearner,
    X: ArrayLike,
    ranks: ArrayLike,
    method: str,
    metric: str,
    *,
    repeat: int = 0,
    target: str | None = None,
) -> list[Result]:
    """Learn the examples and return the curve; if numbers overflow, only an undefined end.

    So a step that is too large for some sequences does not end the experiment.
    """
    try:
        learner.fit(X, ranks)
    except NumericFailureError as error:
        end = float(len(np.asarray(ranks)))
        return [Result(method, metric, None, x=end, repeat=repeat, target=target,
                       detail=str(error))]  # fmt: skip
    return online_curve(learner.online_loss_, method, metric, repeat=repeat, target=target)
