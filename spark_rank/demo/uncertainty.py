"""How far ratings are from scores: measured on held-out ratings of some users of the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.demo.contents import Uncertainty
from spark_rank.demo.quantised import Quantised
from spark_rank.learners import learner_class
from spark_rank.learners.ridge.systems import ridge_of

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Items = NDArray[np.int64]


@dataclass(frozen=True)
class Rated:
    """A user's ratings of items of the page; the first `n_train` are to learn from."""

    items: Items
    ratings: Vector
    n_train: int


@dataclass(frozen=True)
class PageNumbers:
    """Features, offset and prior of the page's items; without a prior it has no rows."""

    features: Matrix
    offset: Vector
    prior: Matrix
    prior_ends: Matrix

    def rounded(self) -> PageNumbers:
        """Return the numbers of 16 bits that the page has."""
        features, prior = (Quantised.of(part).numbers() for part in (self.features, self.prior))
        return PageNumbers(features, self.offset, prior, self.prior_ends)

    def start(self, rated: Items) -> Vector:
        """Return every item's score before learning, for somebody who rated these items."""
        if len(self.prior) == 0:
            return self.offset
        constant, logarithm = self.prior_ends
        weights = self.prior[rated].sum(axis=0) / np.sqrt(len(rated))
        weights = weights + constant + logarithm * np.log(len(rated))
        return np.asarray(self.offset + self.features @ weights)


def measured(
    numbers: PageNumbers, params: dict[str, Any], users: Iterable[Rated], min_ratings: int
) -> Uncertainty | None:
    """Return what the page says of its scores; None if nothing is held out.

    With v the posterior variance of a score in units of the noise, a held-out rating is
    ``noise · (1 + v)`` from its score in the mean of squares.
    """
    rounded = numbers.rounded()
    squares = weights = error = 0.0
    n_users = n_ratings = 0
    for user in users:
        train, test = user.items[: user.n_train], user.items[user.n_train :]
        known = user.ratings[: user.n_train]
        if len(train) < min_ratings or len(test) == 0 or known.min() == known.max():
            continue
        scores = held_out_scores(rounded, params, user)
        exact = held_out_scores(numbers, params, user)
        spread = 1.0 + score_variance(rounded.features, train, test, params)
        squares += float(np.sum((user.ratings[user.n_train :] - scores) ** 2))
        weights += float(spread.sum())
        error = max(error, float(np.abs(scores - exact).max()))
        n_users, n_ratings = n_users + 1, n_ratings + len(test)
    return Uncertainty(squares / weights, error, n_users, n_ratings) if n_users else None


def held_out_scores(numbers: PageNumbers, params: dict[str, Any], user: Rated) -> Vector:
    """Return the scores of the held-out items."""
    train, test = user.items[: user.n_train], user.items[user.n_train :]
    start = numbers.start(train)
    learner: Any = learner_class("mprank")(**params)
    learner.fit(numbers.features[train], user.ratings[: user.n_train], offset=start[train])
    scores: Vector = learner.decision_function(numbers.features[test], offset=start[test])
    return scores


def score_variance(
    features: Matrix, rated: Items, items: Sequence[int] | Items, params: dict[str, Any]
) -> Vector:
    """Return the posterior variance of the items' scores, in units of the noise's variance."""
    ridge = ridge_of(params["C"], params["ridge"], params["growth"], len(rated))
    centre = features[rated].mean(axis=0)
    away, own = features[items] - centre, features[rated] - centre
    system = own.T @ own + ridge * np.eye(features.shape[1])
    variances = np.einsum("if,fi->i", away, np.linalg.solve(system, away.T))
    return np.asarray(1.0 / len(rated) + variances)
