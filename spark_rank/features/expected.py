"""Computes the prior weights and scores of users from the items they rated, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from spark_rank.compiled import njit
from spark_rank.features.gathering import gather


@njit(cache=True, nogil=True)
def expected_weights(prior: Any, items: Any, ends: Any, n_train: Any) -> Any:
    """Return a row of prior weights for every user.

    The items of user u begin at ``ends[u]``, and the first ``n_train[u]`` are for training. The sum
    goes item by item, so that a user's weights do not depend on other users.
    """
    weights = np.zeros((len(n_train), prior.shape[1]))
    for user in range(len(n_train)):
        row = weights[user]
        for place in range(ends[user], ends[user] + n_train[user]):
            item = items[place]
            for k in range(len(row)):
                row[k] += prior[item, k]
        size = float(max(n_train[user], 1))
        row /= np.sqrt(size)
        row += prior[-2]
        row += prior[-1] * np.log(size)
    return weights


@njit(cache=True, nogil=True)
def expected_scores(matrix: Any, rows: Any, excluded: Any, weights: Any, ends: Any) -> Any:
    """Return w·x for every rating of every user; w is the user's row of `weights`.

    x is the row of `matrix` that `rows` names for the rating. Its column ``excluded[u]`` counts as
    0, unless ``excluded[u]`` is negative.
    """
    scores = np.empty(len(rows))
    for user in range(len(weights)):
        own = slice(ends[user], ends[user + 1])
        X = np.empty((ends[user + 1] - ends[user], matrix.shape[1]))
        gather(matrix, rows[own], X)
        if excluded[user] >= 0:
            X[:, excluded[user]] = 0.0
        scores[own] = np.dot(X, weights[user])
    return scores
