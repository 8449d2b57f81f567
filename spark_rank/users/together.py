"""Learners that one compiled call fits for a whole group of users: baselines, linear MPRank.

A linear model of a hundred ratings takes some ten microseconds, of which NumPy would spend a
hundred on being called. What cannot be learned here is left to the way of all other learners.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_rank.learners import MPRank
from spark_rank.learners._linear_users import fit_users, shift_users, told_apart
from spark_rank.learners.ridge import ridge_of
from spark_rank.users.fitting import Limits
from spark_rank.users.problems import ProblemGroup
from spark_rank.users.specs import LearnerSpec

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Together:
    """Whom a call has learned, and the scores of all rows of these users.

    `coefs` are what was learned beyond what was `expected`, each a row per user; None without.
    """

    learned: NDArray[np.bool_]
    intercepts: Vector
    scores: Vector
    coefs: Vector | None = None
    expected: Vector | None = None


def learn_together(
    spec: LearnerSpec, group: ProblemGroup, limits: Limits, min_ratings: int
) -> Together | None:
    """Return what one call learns of the users; None where there is no compiled way.

    Whom it has not learned has to be learned alone.
    """
    if spec.is_baseline:
        return _shifted(spec, group)
    learner = spec.make(limits.scale)
    if group.matrix.shape[1] == 0 or not isinstance(learner, MPRank) or spec.chosen_per_user:
        return None
    if learner.kernel != "linear" or learner.solver == "online":
        return None
    return _fitted(learner, spec, group, min_ratings)


def _shifted(spec: LearnerSpec, group: ProblemGroup) -> Together:
    blocks = group.blocks
    offset = group.offset if spec.item_offset else np.zeros(len(blocks.ratings))
    learned = blocks.n_train > 0
    found = Together(learned, np.zeros(len(learned)), np.zeros(len(offset)))
    shift_users(
        blocks.ratings, offset, blocks.ends, blocks.n_train, learned, found.intercepts, found.scores
    )  # fmt: skip
    return found


def _fitted(learner: MPRank, spec: LearnerSpec, group: ProblemGroup, min_ratings: int) -> Together:
    learner.check_parameters()
    blocks = group.blocks
    known = group.full_offset if spec.item_offset else np.zeros(len(blocks.ratings))
    learned = told_apart(blocks.ratings, blocks.ends, blocks.n_train, min_ratings)
    sizes = blocks.n_train.astype(np.float64)
    ridges = ridge_of(learner.C, learner.ridge, learner.growth, sizes)
    coefs = np.zeros((len(learned), group.matrix.shape[1]))
    expected = group.expected if spec.item_offset else None
    found = Together(learned, np.zeros(len(learned)), np.zeros(len(known)), coefs, expected)
    fit_users(
        group.matrix, group.rows, group.excluded, blocks.ratings - known, blocks.ends,
        blocks.n_train, ridges, learned, coefs, found.intercepts, found.scores,
    )  # fmt: skip
    found.scores[:] += known
    return found
