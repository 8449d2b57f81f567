"""What is known of a user's scores before anything is learned from the ratings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_rank.users.fitting import Sample
from spark_rank.users.problems import Problem
from spark_rank.users.specs import LearnerSpec

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Prior:
    """The offset of every item of the user, and the weights expected that are part of it."""

    offset: Vector | None
    expected: Vector | None

    @property
    def expected_norm(self) -> float | None:
        """Return the norm of the expected weights."""
        return None if self.expected is None else math.sqrt(self.expected @ self.expected)

    def sample(self, problem: Problem) -> Sample:
        """Return the training part of the problem, with the offset there."""
        train = problem.train
        offset = None if self.offset is None else self.offset[train]
        weights = None if problem.weights is None else problem.weights[train]
        return Sample(problem.X[train], problem.ratings[train], offset, weights)

    def held_out(self, problem: Problem) -> tuple[NDArray[np.float64], Vector | None]:
        """Return the features of the held-out items, and the offset there."""
        test = problem.test
        return problem.X[test], None if self.offset is None else self.offset[test]


def prior_of(problem: Problem, spec: LearnerSpec, *, fallback: bool = False) -> Prior:
    """Return what the learner starts from; a `fallback` has nothing else.

    The baseline is the item's offset alone, whatever is known about the user.
    """
    if not (spec.item_offset or fallback):
        return Prior(None, None)
    if spec.is_baseline or problem.expected is None:
        return Prior(problem.offset, None)
    return Prior(problem.full_offset, problem.expected)
