"""What users would say of items shown at random, learned from ratings that they chose to give.

People rate what they like: the probability that a user rates an item, its propensity, grows with
the rating as ``exp(liking · rating)``. Where a rating is a score plus normal noise, it then grows
with the score by the same factor, and a score is known of unrated items, too. So `liking` is the
slope of a logistic choice: which item of a user was held back, and which others are not rated. It
assumes that users come across items independently of how they would like them. Strictly it is the
slope of the odds, and what the weights stand for are the items that a user has not rated: the same
where few items are rated.

Ratings weighted by one over their propensity stand for items shown at random. From the held-back
ratings follows a curve from scores to such ratings. It rises, so the order of a user's items stays.

References
----------
Schnabel, Swaminathan, Singh, Chandak, Joachims: Recommendations as Treatments, ICML 2016.
McFadden: Conditional Logit Analysis of Qualitative Choice Behavior, 1974.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from spark_rank.errors import InputDataError
from spark_rank.features.factor_model import FactorModel, SampledRatings, fit_factor_model
from spark_rank.records.features import ShownFacts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# of a user's training ratings every fifth is held back; of so many users at most
_PARTS, _MOST_USERS = 5, 20_000
# items drawn for every user
_OTHERS = 100
_LEAST_RATINGS = 100
# scores between these quantiles decide the curve; it goes on straight beyond them
_QUANTILES = (0.01, 0.99)
_NEWTON_STEPS = 12
_LEAST_CURVATURE = 1e-9


def propensities(facts: ShownFacts, ratings: ArrayLike, n_train: ArrayLike) -> FloatArray:
    """Return the propensities of ratings of users with `n_train` ratings, up to a factor."""
    values = np.asarray(ratings, dtype=np.float64)
    sizes = np.maximum(np.asarray(n_train, dtype=np.float64), 1.0)
    return np.asarray(sizes * np.exp(facts.liking * (values - facts.middle)))


def shown_ratings(facts: ShownFacts, scores: ArrayLike) -> FloatArray:
    """Return what the users would say of items with these scores if they were shown them."""
    values = np.asarray(scores, dtype=np.float64)
    within = np.clip(values, facts.low, facts.high)
    square, linear, constant = facts.curve
    slope = 2.0 * square * within + linear
    return np.asarray((square * within + linear) * within + constant + slope * (values - within))


def learn_shown(
    data: SampledRatings, *, rank: int, rounds: int, seed: int, choices: bool
) -> ShownFacts:
    """Estimate propensities and curve, with factors that are learned without what is held back.

    Raises
    ------
    InputDataError
        If there are fewer than a hundred ratings to hold back.
    """
    kept, held_back = _parts(data)
    fitted = partial(fit_factor_model, kept, rank=rank, rounds=rounds, seed=seed)
    # sums in BLAS depend on the number of threads
    with threadpool_limits(1, user_api="blas"):
        _check_size(len(held_back.ratings))
        judged = _judged(fitted(choices=False), data, kept, held_back, seed)
        _check_size(sum(len(user.ratings) for user in judged))
        liking = _slope(judged)
        if choices:  # not before: a prior that knows what was not chosen knows what is asked
            judged = _judged(fitted(choices=True), data, kept, held_back, seed)
    scores = np.concatenate([user.chosen for user in judged])
    ratings = np.concatenate([user.ratings for user in judged])
    middle = float(ratings.mean())
    weights = np.exp(-liking * (ratings - middle))
    curve, low, high = _curve(scores, ratings, weights)
    effective = float(weights.sum() ** 2 / (weights @ weights))
    return ShownFacts(liking, middle, curve, low, high, len(ratings), effective)


def _check_size(ratings: int) -> None:
    if ratings < _LEAST_RATINGS:
        raise InputDataError(
            f"features.propensities: {ratings} ratings to hold back are too few, at least "
            f"{_LEAST_RATINGS} are needed, of users with unrated items: set it to none"
        )


class _Judged(NamedTuple):
    """A user's scores of the items that were held back, their ratings, and scores of others."""

    chosen: FloatArray
    ratings: FloatArray
    others: FloatArray


def _parts(data: SampledRatings) -> tuple[SampledRatings, SampledRatings]:
    """Return all ratings but the last fifth of each user's, and these."""
    sizes = np.diff(data.ends)
    held_sizes = sizes // _PARTS
    place = np.arange(len(data.items)) - np.repeat(data.ends[:-1], sizes)
    is_held = place >= np.repeat(sizes - held_sizes, sizes)
    return (_part(data, ~is_held, sizes - held_sizes), _part(data, is_held, held_sizes))


def _part(data: SampledRatings, chosen: NDArray[np.bool_], sizes: IntArray) -> SampledRatings:
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return replace(data, items=data.items[chosen], ratings=data.ratings[chosen], ends=ends)


def _judged(
    model: FactorModel,
    data: SampledRatings,
    kept: SampledRatings,
    held_back: SampledRatings,
    seed: int,
) -> list[_Judged]:
    """Score what was held back, and other items drawn at random; the draws depend on the seed."""
    rng = np.random.default_rng(seed)
    features, choice = model.whitened()
    users = []
    for user in range(min(data.n_users, _MOST_USERS)):
        own, held = (slice(part.ends[user], part.ends[user + 1]) for part in (kept, held_back))
        drawn = rng.integers(0, data.n_items, _OTHERS)
        others = drawn[~np.isin(drawn, data.items[data.ends[user] : data.ends[user + 1]])]
        if held.stop == held.start or len(others) == 0:
            continue
        scores = _scores(model, features, choice, kept.items[own], kept.ratings[own])
        items = held_back.items[held]
        users.append(_Judged(scores[items], held_back.ratings[held], scores[others]))
    return users


def _scores(
    model: FactorModel,
    features: FloatArray,
    choice: FloatArray,
    items: NDArray[np.int32],
    ratings: FloatArray,
) -> FloatArray:
    """Return a user's score of every item, by ridge regression from the prior."""
    n = len(items)
    expected = choice[items].sum(axis=0) / np.sqrt(n) + choice[-2] + choice[-1] * np.log(n)
    X = features[items]
    targets = ratings - model.bias[items] - X @ expected
    centred = X - X.mean(axis=0)
    gram = centred.T @ centred + np.eye(X.shape[1])
    weights = np.linalg.solve(gram, centred.T @ (targets - targets.mean()))
    level = targets.mean() - X.mean(axis=0) @ weights
    return np.asarray(model.bias + features @ (expected + weights) + level)


def _slope(judged: list[_Judged]) -> float:
    """Return the slope with which an item is chosen among it and the others, by Newton's method."""
    slope = 0.0
    longest = 1.0 / max(float(np.concatenate([user.others for user in judged]).std()), 1e-9)
    for _ in range(_NEWTON_STEPS):
        gradient, curvature = 0.0, _LEAST_CURVATURE
        for user in judged:
            top = max(user.chosen.max(), user.others.max())
            own = np.exp(slope * (user.chosen - top))
            others = np.exp(slope * (user.others - top))
            total = own + others.sum()
            mean = (own * user.chosen + others @ user.others) / total
            square = (own * user.chosen**2 + others @ user.others**2) / total
            gradient += float((user.chosen - mean).sum())
            curvature += float((square - mean**2).sum())
        slope += float(np.clip(gradient / curvature, -longest, longest))
    return slope


def _curve(
    scores: FloatArray, ratings: FloatArray, weights: FloatArray
) -> tuple[tuple[float, float, float], float, float]:
    """Return the weighted parabola that rises between two quantiles of the scores, or a line."""
    low, high = np.quantile(scores, _QUANTILES).tolist()
    for degree in (2, 1):
        powers = np.vander(scores, degree + 1)
        weighted = powers * weights[:, None]
        solved = np.linalg.lstsq(weighted.T @ powers, weighted.T @ ratings, rcond=None)[0]
        square, linear, constant = [0.0] * (2 - degree) + solved.tolist()
        if min(2.0 * square * low + linear, 2.0 * square * high + linear) > 0.0:
            return (square, linear, constant), low, high
    # scores that say nothing of such ratings: only the level is shifted
    return (0.0, 1.0, float(weights @ (ratings - scores) / weights.sum())), low, high
