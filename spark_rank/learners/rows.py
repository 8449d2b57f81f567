"""What a learner leaves in a row of the table `models`, and what it may learn in one call.

A learner writes its own columns (`Learner.to_row`); scoring needs no more than these. They belong
to families, and a row may have several of them at once:

* linear: ``weights`` on the features, ``intercept``;
* kernel: ``dual`` coefficients of the training examples at ``support`` (their places; left out
  where they are all of them, in order), ``kernel``, ``gamma``;
* ranks: ``thresholds`` of the score;
* votes: with ``votes`` the rules 0, 1, … add up the first duals, and thresholds are as many for
  every rule;
* prototypes: ``prototypes``, a row of weights for every rank;
* base rankers: ``ranker_features``, ``ranker_cuts``, ``ranker_below``, ``ranker_alphas``;
* members: ``members``, a pair of matrices with a row of weights and a row of thresholds each, and
  ``member_votes``.

A learner of ranks that is given an item offset has it as its last feature: its weights, prototypes
and members end with the weight on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = dict[str, Any]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class ManyUsers:
    """The problems of many users end to end, for a learner that fits them in one call.

    User u owns the places from ``ends[u]`` to ``ends[u + 1]``, the first ``n_train[u]`` to learn
    from. The features of a place are the `matrix`'s row ``rows[place]``, where the column
    ``excluded[u]`` counts as 0 unless it is negative; `offset` are the scores before learning.
    Users with fewer than `min_ratings` training ratings are left out.
    """

    matrix: NDArray[np.floating[Any]]
    rows: NDArray[np.int32]
    excluded: NDArray[np.int64]
    ratings: Vector
    offset: Vector
    ends: NDArray[np.int64]
    n_train: NDArray[np.int64]
    min_ratings: int


@dataclass(frozen=True)
class ManyFitted:
    """Who was learned, and the scores of all places of these users; others are learned alone.

    `coefs` has a row of weights for every user, beyond what the offset says; None without any.
    """

    learned: NDArray[np.bool_]
    intercepts: Vector
    scores: Vector
    coefs: Vector | None = None
