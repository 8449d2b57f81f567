"""The columns of a model row that learners write, and the arrays to learn many users at once.

A learner writes its own columns (`Learner.to_row`); scoring needs only these. They belong to
families, and a row may combine several families:

* linear: ``weights`` on the features, ``intercept``;
* kernel: ``dual`` coefficients of the training examples at the positions ``support`` (left out if
  these are all examples in order), ``kernel``, ``gamma``;
* ranks: ``thresholds`` of the score;
* votes: with ``votes`` rule s sums the first s duals, and every rule has its own thresholds;
* prototypes: ``prototypes``, a row of weights for every rank;
* base rankers: ``ranker_features``, ``ranker_cuts``, ``ranker_below``, ``ranker_alphas``;
* members: ``members``, a pair of matrices with a row of weights and a row of thresholds each, and
  ``member_votes``.

A learner of ranks with an item offset has the offset as its last feature: its weights, prototypes
and members end with the weight on the offset.
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
    """The examples of many users, one user after the other, for a learner that fits all at once.

    User u has the examples from ``ends[u]`` to ``ends[u + 1]``, the first ``n_train[u]`` for
    training. The features of example i are row ``rows[i]`` of `matrix`, where the column
    ``excluded[u]`` counts as 0 unless it is negative. `offset` has the scores before learning.
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
    """Which users were learned, and the scores of all their examples; others are learned alone.

    `coefs` has a row of weights for every user, to add to the offset; None without weights.
    """

    learned: NDArray[np.bool_]
    intercepts: Vector
    scores: Vector
    coefs: Vector | None = None
