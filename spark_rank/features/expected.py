"""What to expect of users who rated certain items: sums over rows of the prior, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from spark_rank.compiled import njit
from spark_rank.features.gathering import gather


@njit(cache=True, nogil=True)
def expected_weights(prior: Any, items: Any, ends: Any, n_train: Any) -> Any:
    """Return a row of weights for every user.

    User u rated the items from ``ends[u]`` on, ``n_train[u]`` of them to learn from. The sum goes
    from one item to the next, so that nobody's depends on who else is there.
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
    """Return w·x for every place of every user, w the user's row of `weights`.

    x is the matrix's row of that place, of which the column ``excluded[u]`` counts as 0 unless it
    is negative.
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
