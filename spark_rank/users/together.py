"""Learners that fit a whole group of users in one call, if they can (`Learner.fit_many`).

A linear model of a hundred ratings takes some ten microseconds, of which NumPy would spend a
hundred on being called. Who is not learned here is learned alone, as by all other learners.
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
    """Return what one call learns of the users; None where the learner has no such way.

    Whom it has not learned has to be learned alone.
    """
    learner = spec.make(limits.scale)
    blocks = group.blocks
    if spec.chosen_per_user or learner.of_ranks or blocks.weights is not None:
        return None
    # a baseline knows the item alone, whatever is expected of the user
    known = group.offset if spec.is_baseline else group.full_offset
    users = ManyUsers(
        group.matrix, group.rows, group.excluded, blocks.ratings,
        known if spec.item_offset else np.zeros(len(blocks.ratings)), blocks.ends,
        blocks.n_train, min_ratings,
    )  # fmt: skip
    found = learner.fit_many(users)
    if found is None:
        return None
    expected = group.expected if spec.item_offset and found.coefs is not None else None
    return Together(found.learned, found.intercepts, found.scores, found.coefs, expected)
