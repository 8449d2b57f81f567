"""A user's scores before learning: item offset and prior weights."""

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
    """The score before learning of every item of the user, and the prior weights in it."""

    offset: Vector | None
    expected: Vector | None

    @property
    def expected_norm(self) -> float | None:
        """Return the norm of the prior weights."""
        return None if self.expected is None else math.sqrt(self.expected @ self.expected)

    def sample(self, problem: Problem) -> Sample:
        """Return the training part of the problem with its offsets."""
        train = problem.train
        offset = None if self.offset is None else self.offset[train]
        weights = None if problem.weights is None else problem.weights[train]
        return Sample(problem.X[train], problem.ratings[train], offset, weights)

    def held_out(self, problem: Problem) -> tuple[NDArray[np.float64], Vector | None]:
        """Return the features of the held-out items and their offsets."""
        test = problem.test
        return problem.X[test], None if self.offset is None else self.offset[test]


def prior_of(problem: Problem, spec: LearnerSpec, *, fallback: bool = False) -> Prior:
    """Return the prior that the learner starts from; a `fallback` has no other model.

    A baseline uses the item offset alone, without the weights expected of the user.
    """
    if not (spec.item_offset or fallback):
        return Prior(None, None)
    if spec.is_baseline or problem.expected is None:
        return Prior(problem.offset, None)
    return Prior(problem.full_offset, problem.expected)
