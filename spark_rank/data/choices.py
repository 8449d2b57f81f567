"""Generates ratings that users chose to give, where every rating and every probability is known.

What a user has rated says little about items shown at random, since people choose what they like.
A learner can only be judged on such items where their ratings are known. There are two ways: users
who have rated everything (Jester), or ratings that an independent model completes (`completed`).
From complete ratings, `by_liking` and `by_level` give the probability that a user rates an item,
and `choose` draws.

References
----------
Schnabel, Swaminathan, Singh, Chandak, Joachims: Recommendations as Treatments, ICML 2016 (the
completed ratings, their levels at random and `by_level`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]

# the shares of the levels 1 to 5 among ratings of songs shown at random (Yahoo R3)
SHARES_AT_RANDOM = (0.526, 0.242, 0.144, 0.062, 0.026)
# ratings for which the mean of a user or an item is shrunken, and the similarity of two items
_MEAN_SHRINKAGE, _SIMILARITY_SHRINKAGE = 5.0, 25.0
# similarity by which an item's neighbours are shrunken
_NEIGHBOUR_SHRINKAGE = 3.0
_ROUNDS_OF_MEANS = 10
_BISECTIONS = 100


@dataclass(frozen=True)
class Choices:
    """Complete ratings, users × items, and who saw what.

    `training` and `chosen` are ratings that users chose to give, to learn from and held out;
    `shown` are items drawn at random from all others.
    """

    ratings: FloatArray
    propensities: FloatArray
    training: Mask
    chosen: Mask
    shown: Mask


def by_liking(ratings: FloatArray, strength: float, share: float) -> FloatArray:
    """Return probabilities ``min(1, c·exp(strength · z))``; z is the standardised rating.

    c is such that the mean is `share`. With strength 0, everybody rates items at random.
    """
    weights = np.exp(strength * (ratings - ratings.mean()) / ratings.std())
    return _with_mean(weights, share)


def by_level(ratings: FloatArray, decay: float, share: float, full_from: float = 4.0) -> FloatArray:
    """Return probabilities ``min(1, c·decay^max(0, full_from − rating))`` of mean `share`."""
    return _with_mean(decay ** np.maximum(0.0, full_from - ratings), share)


def _with_mean(weights: FloatArray, share: float) -> FloatArray:
    """Return ``min(1, c·weights)`` with the c that makes the mean `share`."""
    least, most = 0.0, 1.0 / float(weights.min())
    for _ in range(_BISECTIONS):
        middle = (least + most) / 2.0
        too_many = np.minimum(1.0, middle * weights).mean() > share
        least, most = (least, middle) if too_many else (middle, most)
    return np.minimum(1.0, most * weights)


def choose(
    ratings: FloatArray, propensities: FloatArray, *, seed: int, shown: int, held_out: float
) -> Choices:
    """Draw the ratings of every user, and `shown` items at random from those not rated.

    A drawn rating is held out with probability `held_out`. A user's draws depend on the seed, the
    user's row and the number of items.
    """
    draws = np.stack([_generator(seed, user).random((3, ratings.shape[1]))
                      for user in range(len(ratings))], axis=1)  # fmt: skip
    rated = draws[0] < propensities
    kept = draws[1] >= held_out
    order = np.argsort(np.where(rated, np.inf, draws[2]), axis=1, kind="stable")
    first = np.zeros_like(rated)
    np.put_along_axis(first, order[:, :shown], True, axis=1)
    return Choices(ratings, propensities, rated & kept, rated & ~kept, first & ~rated)


def completed(
    users: NDArray[np.int64],
    items: NDArray[np.int64],
    ratings: FloatArray,
    *,
    seed: int,
    shares: tuple[float, ...] = SHARES_AT_RANDOM,
) -> FloatArray:
    """Return complete ratings in levels 1, 2, …, users × items, that a neighbour model predicts.

    Normal noise as large as the model's error on the given ratings is added to each prediction.
    The lowest `shares[0]` of all become level 1, and so on. The model weighs ratings of similar
    items; it shares nothing with factor models, which are to be judged on the result.
    """
    known = np.zeros((int(users.max()) + 1, int(items.max()) + 1))
    given = np.zeros_like(known)
    known[users, items], given[users, items] = 1.0, ratings
    predicted = _by_neighbours(given, known)
    spread = float((given - predicted)[known > 0].std())
    noisy = predicted + np.stack([
        _generator(seed, user).normal(0.0, spread, known.shape[1]) for user in range(len(known))
    ])  # fmt: skip
    cuts = np.quantile(noisy, np.cumsum(shares)[:-1])
    return np.asarray(np.searchsorted(cuts, noisy), dtype=np.float64) + 1.0


def _by_neighbours(given: FloatArray, known: FloatArray) -> FloatArray:
    """Return means of users and items plus the weighted residuals of similar items."""
    means = _means(given, known)
    residuals = (given - means) * known
    together = known.T @ known
    squares = (residuals**2).T @ known
    sizes = np.sqrt(squares * squares.T)
    similar = residuals.T @ residuals / np.maximum(sizes, 1e-12)
    similar *= together / (together + _SIMILARITY_SHRINKAGE)
    np.fill_diagonal(similar, 0.0)
    return means + residuals @ similar / (known @ np.abs(similar) + _NEIGHBOUR_SHRINKAGE)


def _means(given: FloatArray, known: FloatArray) -> FloatArray:
    """Return the mean, plus shrunken deviations of the user and the item."""
    mean = given.sum() / known.sum()
    of_user, of_item = np.zeros((len(given), 1)), np.zeros((1, given.shape[1]))
    for _ in range(_ROUNDS_OF_MEANS):
        above = (given - mean - of_user) * known
        of_item = above.sum(axis=0, keepdims=True) / (
            known.sum(axis=0, keepdims=True) + _MEAN_SHRINKAGE
        )
        above = (given - mean - of_item) * known
        of_user = above.sum(axis=1, keepdims=True) / (
            known.sum(axis=1, keepdims=True) + _MEAN_SHRINKAGE
        )
    return np.asarray(mean + of_user + of_item)


def _generator(seed: int, user: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=np.array([seed, user], dtype=np.uint64)))
