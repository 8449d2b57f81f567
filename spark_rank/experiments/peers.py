"""Recommenders to compare with: they learn from all training ratings and predict the others.

Item-kNN and SVD++ are ``KNNBaseline`` and ``SVDpp`` of scikit-surprise, up to rounding; the linear
item model is a ridge regression of each item on all others. None clips its predictions to the
rating scale, because that would make ties.

References
----------
Koren: Factorization Meets the Neighborhood, KDD 2008 (SVD++); Factor in the Neighbors, TKDD 4,
2010 (baselines, shrunken correlations).
Steck: Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019 (linear item models).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from spark_rank.compiled import njit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_USERS_AT_ONCE = 500
_DAMPING = 20.0


@dataclass(frozen=True)
class Split:
    """All users' ratings, one user after the other: user u has ends[u] to ends[u + 1]."""

    items: NDArray[np.int32]
    ratings: FloatArray
    ends: IntArray
    test_items: NDArray[np.int32]
    test_ratings: FloatArray
    test_ends: IntArray
    n_items: int

    def users(self) -> IntArray:
        """Return the user of every training rating."""
        return np.repeat(np.arange(len(self.ends) - 1), np.diff(self.ends))

    def held_out_users(self) -> IntArray:
        """Return the user of every held-out rating."""
        return np.repeat(np.arange(len(self.test_ends) - 1), np.diff(self.test_ends))

    def matrix(self, values: FloatArray) -> csr_matrix:
        """Return users × items, `values` at the training ratings."""
        return csr_matrix((values, self.items, self.ends), (len(self.ends) - 1, self.n_items))


@dataclass(frozen=True)
class Baseline:
    """The rating expected from a level per user and a level per item."""

    mean: float
    user: FloatArray
    item: FloatArray

    def residuals(self, split: Split) -> FloatArray:
        """Return the training ratings minus the baseline."""
        return split.ratings - self.mean - self.user[split.users()] - self.item[split.items]

    def scores(self, split: Split) -> FloatArray:
        """Return the baseline of every held-out rating."""
        return self.mean + self.user[split.held_out_users()] + self.item[split.test_items]


def fit_baseline(
    split: Split, *, user_ridge: float = 15.0, item_ridge: float = 10.0, rounds: int = 10
) -> Baseline:
    """Fit levels by alternating ridge regressions, items first: O(ratings) a round."""
    users, n_users = split.users(), len(split.ends) - 1
    centred = split.ratings - split.ratings.mean()
    per_user = np.diff(split.ends) + user_ridge
    per_item = np.bincount(split.items, minlength=split.n_items) + item_ridge
    user = np.zeros(n_users)
    for _ in range(rounds):
        rest = centred - user[users]
        item = np.bincount(split.items, weights=rest, minlength=split.n_items) / per_item
        user = np.bincount(users, weights=centred - item[split.items], minlength=n_users) / per_user
    return Baseline(float(split.ratings.mean()), user, item)


class ItemNeighbours:
    """Weighted means of the user's residuals over the k items most correlated with the target."""

    def __init__(self, split: Split) -> None:
        self.split, self.baseline = split, fit_baseline(split)
        self.residuals = self.baseline.residuals(split)
        rated, left = split.matrix(np.ones(len(split.items))), split.matrix(self.residuals)
        self.together = (rated.T @ rated).toarray()
        squares = (split.matrix(self.residuals**2).T @ rated).toarray()
        norms = np.sqrt(squares * squares.T)
        self.correlation = np.divide(
            (left.T @ left).toarray(), norms, out=np.zeros_like(norms), where=norms > 0.0
        )

    def similarity(self, shrinkage: float) -> FloatArray:
        """Return the correlations over common users, shrunk by (n − 1) / (n − 1 + shrinkage)."""
        evidence = np.maximum(self.together - 1.0, 0.0)
        weight = np.divide(
            evidence, evidence + shrinkage, out=np.zeros_like(evidence), where=evidence > 0.0
        )
        return self.correlation * weight

    def scores(self, shrinkage: float, sizes: Sequence[int]) -> dict[int, FloatArray]:
        """Return the predictions for each neighbourhood size k of `sizes`.

        O(n log n) for each held-out item of a user with n training items. Only positive
        similarities count; without any the prediction is the baseline.
        """
        split, ascending = self.split, np.unique(sizes)
        found = np.zeros((len(ascending), len(split.test_items)))
        _neighbour_means(
            split.ends, split.items, self.residuals, split.test_ends, split.test_items,
            self.similarity(shrinkage), ascending, found,
        )  # fmt: skip
        level = self.baseline.scores(split)
        return {int(k): level + row for k, row in zip(ascending, found, strict=True)}


@njit(cache=True)
def _neighbour_means(
    ends: Any, items: Any, residuals: Any, test_ends: Any, test_items: Any, similarity: Any,
    sizes: Any, found: Any,
) -> None:  # fmt: skip
    for user in range(len(ends) - 1):
        own = items[ends[user] : ends[user + 1]]
        values = residuals[ends[user] : ends[user + 1]]
        for target in range(test_ends[user], test_ends[user + 1]):
            row = similarity[test_items[target]]
            distances = np.empty(len(own))
            for place in range(len(own)):
                distances[place] = -row[own[place]]
            # stable: equally similar items stay in the user's order
            order = np.argsort(distances, kind="mergesort")
            weight, total, size = 0.0, 0.0, 0
            for taken in range(len(own)):
                near = -distances[order[taken]]
                if near <= 0.0 or size == len(sizes):
                    break
                weight += near
                total += near * values[order[taken]]
                if taken + 1 == sizes[size]:
                    found[size, target] = total / weight
                    size += 1
            if weight > 0.0:
                for larger in range(size, len(sizes)):
                    found[larger, target] = total / weight


class LinearItems:
    """Every item's residual as a linear function of the user's residuals on all other items.

    The weights are those of ridge regression with missing residuals as zeros, for all items from
    one inverse. Because most targets are missing, predictions are far too small, and sums over many
    ratings vary too much. So predictions are divided by the root of the user's number of ratings,
    and scaled by the single factor that is best *on the held-out ratings*, which favours the model.
    """

    def __init__(self, split: Split) -> None:
        self.split, self.baseline = split, fit_baseline(split)
        self.residuals = split.matrix(self.baseline.residuals(split))
        self.gram = (self.residuals.T @ self.residuals).toarray()

    def weights(self, ridge: float) -> FloatArray:
        """Return how much each item (row) counts for each target (column): O(items³)."""
        system = self.gram.copy()
        system[np.diag_indices_from(system)] += ridge
        inverse = np.linalg.inv(system)
        weights = -inverse / np.diag(inverse)
        np.fill_diagonal(weights, 0.0)
        return weights

    def scores(self, ridge: float) -> FloatArray:
        """Return the predictions, O(ratings · items) beside the inverse."""
        split, weights = self.split, self.weights(ridge)
        users, level = split.held_out_users(), self.baseline.scores(split)
        sums = np.empty(len(users))
        for first in range(0, len(split.ends) - 1, _USERS_AT_ONCE):
            block = self.residuals[first : first + _USERS_AT_ONCE] @ weights
            here = slice(split.test_ends[first], split.test_ends[first + len(block)])
            sums[here] = block[users[here] - first, split.test_items[here]]
        damped = sums / np.sqrt(np.diff(split.ends) + _DAMPING)[users]
        squares = damped @ damped
        gain = damped @ (split.test_ratings - level) / squares if squares > 0.0 else 0.0
        return level + gain * damped


def svdpp_scores(
    split: Split, *, factors: int, rate: float, ridge: float, epochs: Sequence[int], seed: int
) -> Iterator[tuple[int, FloatArray]]:
    """Train SVD++ by stochastic gradient descent; yield the predictions after each of `epochs`.

    O(ratings · factors) an epoch: each rating of a user moves all the user's implicit vectors
    alike, so only their sum is updated, and the vectors at the end of the user.
    """
    rng = np.random.default_rng(seed)
    mean = float(split.ratings.mean())
    levels = np.zeros(len(split.ends) - 1), np.zeros(split.n_items)
    shapes = [(len(levels[0]), factors), (split.n_items, factors), (split.n_items, factors)]
    users, items, implicit = (rng.normal(0.0, 0.1, shape) for shape in shapes)
    # an item without a training rating has factors 0, so that only its level counts
    items[np.bincount(split.items, minlength=split.n_items) == 0] = 0.0
    place, target = split.held_out_users(), split.test_items
    roots = np.sqrt(np.maximum(np.diff(split.ends), 1))
    for epoch in range(1, max(epochs) + 1):
        _svdpp_epoch(
            split.ends, split.items, split.ratings - mean, *levels, users, items, implicit, rate,
            ridge,
        )  # fmt: skip
        if epoch in epochs:
            sums = split.matrix(np.ones(len(split.items))) @ implicit
            whole = users + sums / roots[:, None]
            product = np.einsum("ij,ij->i", whole[place], items[target])
            yield epoch, mean + levels[0][place] + levels[1][target] + product


@njit(cache=True)
def _svdpp_epoch(
    ends: Any, items: Any, targets: Any, user_level: Any, item_level: Any, users: Any,
    factors: Any, implicit: Any, rate: float, ridge: float,
) -> None:  # fmt: skip
    """Take one step per rating, in the order of the users and of their ratings."""
    keep = 1.0 - rate * ridge
    width = factors.shape[1]
    for user in range(len(ends) - 1):
        first, last = ends[user], ends[user + 1]
        root = np.sqrt(last - first)
        start = np.zeros(width)
        for place in range(first, last):
            for f in range(width):
                start[f] += implicit[items[place], f] / root
        # after t steps an implicit vector y is decay · y + moved, with decay = keep**t
        decay, moved = 1.0, np.zeros(width)
        for place in range(first, last):
            item = items[place]
            error = targets[place] - user_level[user] - item_level[item]
            for f in range(width):
                error -= factors[item, f] * (users[user, f] + decay * start[f] + root * moved[f])
            user_level[user] += rate * (error - ridge * user_level[user])
            item_level[item] += rate * (error - ridge * item_level[item])
            for f in range(width):
                own, other = users[user, f], factors[item, f]
                whole = own + decay * start[f] + root * moved[f]
                users[user, f] += rate * (error * other - ridge * own)
                factors[item, f] += rate * (error * whole - ridge * other)
                moved[f] = keep * moved[f] + rate * error * other / root
            decay *= keep
        for place in range(first, last):
            for f in range(width):
                implicit[items[place], f] = decay * implicit[items[place], f] + moved[f]
