"""Learners that one compiled call fits for a whole group of users: baselines, linear MPRank.

A linear model of a hundred ratings takes some ten microseconds, of which NumPy would spend a
hundred on being called. What cannot be learned here is left to the way of all other learners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.engine.fitting import Limits
from spark_rank.engine.problems import ProblemGroup
from spark_rank.engine.specs import LearnerSpec
from spark_rank.learners import MPRank
from spark_rank.learners._linear_users import fit_users, shift_users, told_apart
from spark_rank.learners.ridge import ridge_of

Row = dict[str, Any]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Together:
    """Whom a call has learned, and the scores of all rows of these users."""

    learned: NDArray[np.bool_]
    intercepts: Vector
    scores: Vector
    coefs: Vector | None = None


def learn_together(
    spec: LearnerSpec, group: ProblemGroup, limits: Limits, min_ratings: int
) -> Sequence[Row | None]:
    """Return every user's columns of the table `models`, but for those that say who and what.

    None for a user who has to be learned alone: every user, where there is no compiled way.
    """
    if spec.is_baseline:
        return _rows(spec, group, limits, _shifted(spec, group))
    learner = spec.make(limits.scale)
    if group.X.shape[1] == 0 or not isinstance(learner, MPRank) or spec.chosen_per_user:
        return [None] * len(group.blocks.users)
    if learner.kernel != "linear" or learner.solver == "online":
        return [None] * len(group.blocks.users)
    return _rows(spec, group, limits, _fitted(learner, spec, group, min_ratings))


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
    ridges = np.array([
        ridge_of(learner.C, learner.ridge, learner.growth, m) for m in blocks.n_train.tolist()
    ])  # fmt: skip
    coefs = np.zeros((len(learned), group.X.shape[1]))
    found = Together(learned, np.zeros(len(learned)), np.zeros(len(known)), coefs)
    fit_users(
        group.X, blocks.ratings - known, blocks.ends, blocks.n_train, ridges, learned, coefs,
        found.intercepts, found.scores,
    )  # fmt: skip
    found.scores[:] += known
    return found


def _rows(
    spec: LearnerSpec, group: ProblemGroup, limits: Limits, found: Together
) -> Sequence[Row | None]:
    blocks = group.blocks
    common: Row = {
        "status": "learned",
        "hyperparameters": spec.hyperparameters(limits.scale),
        "offset_weight": float(spec.item_offset),
    }
    expected = group.expected if spec.item_offset and not spec.is_baseline else None
    more = [{}] * len(found.learned) if found.coefs is None else _weights(found.coefs, expected)
    rows: list[Row | None] = []
    starts, sizes = blocks.ends.tolist(), blocks.n_train.tolist()
    intercepts = found.intercepts.tolist()
    for user, learned in enumerate(found.learned.tolist()):
        start, middle, stop = starts[user], starts[user] + sizes[user], starts[user + 1]
        rows.append({
            **common,
            **more[user],
            "intercept": intercepts[user],
            "training": (found.scores[start:middle], blocks.ratings[start:middle]),
            "test_scores": found.scores[middle:stop],
        } if learned else None)  # fmt: skip
    return rows


def _weights(coefs: Vector, expected: Vector | None) -> list[Row]:
    """Return the columns about the weights: what was learned plus what was expected."""
    norms = _norms(coefs)
    if expected is None:
        return [
            {"kernel": "linear", "weights": weights, "norm": norm}
            for weights, norm in zip(coefs, norms, strict=True)
        ]
    return [
        {"kernel": "linear", "weights": weights, "norm": norm, "expected_norm": other}
        for weights, norm, other in zip(coefs + expected, norms, _norms(expected), strict=True)
    ]


def _norms(rows: Vector) -> list[float]:
    norms: list[float] = np.sqrt(np.einsum("ij,ij->i", rows, rows)).tolist()
    return norms
