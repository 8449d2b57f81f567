"""Fits a whole group of users in one call, for learners that can (`Learner.fit_many`).

A linear model of a hundred ratings takes about ten microseconds; calls of NumPy for each user would
add a hundred. Users who are not learned here are learned one by one, as by all other learners.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_rank.learners.rows import ManyUsers
from spark_rank.users.fitting import Limits
from spark_rank.users.problems import ProblemGroup
from spark_rank.users.specs import LearnerSpec

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Together:
    """The result of one call: who was learned, and the training and held-out scores.

    `coefs` are the learned weights without the prior's, `expected` the prior's, both with a row
    per user; None without.
    """

    learned: NDArray[np.bool_]
    intercepts: Vector
    scores: Vector
    coefs: Vector | None = None
    expected: Vector | None = None


def learn_together(
    spec: LearnerSpec, group: ProblemGroup, limits: Limits, min_ratings: int
) -> Together | None:
    """Return the models that one call learns; None if the learner cannot learn many users at once.

    Users whom it has not learned have to be learned one by one.
    """
    learner = spec.make(limits.scale)
    blocks = group.blocks
    if spec.chosen_per_user or learner.of_ranks or blocks.weights is not None:
        return None
    # a baseline uses the item offset alone, without the prior of the user
    offset = group.offset if spec.is_baseline else group.full_offset
    users = ManyUsers(
        group.matrix, group.rows, group.excluded, blocks.ratings,
        offset if spec.item_offset else np.zeros(len(blocks.ratings)), blocks.ends,
        blocks.n_train, min_ratings,
    )  # fmt: skip
    result = learner.fit_many(users)
    if result is None:
        return None
    expected = group.expected if spec.item_offset and result.coefs is not None else None
    return Together(result.learned, result.intercepts, result.scores, result.coefs, expected)
