"""Chooses a user's point of a grid from the errors of a sample of users and the user's own errors.

A user's own errors (leave-pair-out, folds) have two faults. They are optimistic: the item features
have already seen the ratings that are left out, which favours points that fit closely. And they are
noisy: there are only a few dozen ratings. So a user starts from the sample's errors on ratings that
no feature has seen. These are corrected by the difference between the user's own errors and the own
errors of the sample's users, in which the shared optimism cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_rank.records.models import PriorFacts

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# how many ratings weigh as much as the sample; the best of these is chosen on the sample
_TRUSTED_FROM = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
# a gain counts only from this many standard errors on
_EVIDENCE = 2.0


@dataclass(frozen=True)
class ChoicePrior:
    """A sample's errors at every point of a grid, infinite where a point cannot be learned.

    `errors` are means over users on ratings that were held back, `own_errors` means of the users'
    own errors. A user's difference from `own_errors` has weight n / (n + `ratings`), with n
    training ratings.
    """

    errors: tuple[float, ...]
    own_errors: tuple[float, ...]
    ratings: float

    @classmethod
    def from_facts(cls, facts: PriorFacts) -> ChoicePrior:
        """Return the prior that `to_facts` put into a manifest."""
        errors, own_errors = (
            tuple(math.inf if value is None else value for value in values)
            for values in (facts.errors, facts.own_errors)
        )
        return cls(errors, own_errors, facts.ratings)

    def to_facts(self) -> PriorFacts:
        """Return the prior as facts for the manifest; an infinite error is None."""
        errors, own_errors = (
            tuple(value if math.isfinite(value) else None for value in values)
            for values in (self.errors, self.own_errors)
        )
        return PriorFacts(errors, own_errors, self.ratings)

    def best(self, user_errors: Vector | None, n_ratings: int) -> int:
        """Return the best point for a user with these own errors; None if they are undefined."""
        errors = np.array(self.errors)
        if user_errors is None:
            return int(np.argmin(errors))
        mean_own = np.array(self.own_errors)
        defined = np.isfinite(errors) & np.isfinite(mean_own) & np.isfinite(user_errors)
        if not defined.any():
            return int(np.argmin(errors))
        trust = n_ratings / (n_ratings + self.ratings)
        corrected = np.full(len(errors), np.inf)
        corrected[defined] = errors[defined] + trust * (user_errors[defined] - mean_own[defined])
        return int(np.argmin(corrected))


def measured_prior(
    held_back: Matrix, user_errors: list[Vector | None], n_ratings: NDArray[np.int64]
) -> ChoicePrior | None:
    """Return the prior with which the sample's users choose best; None if one point is as good.

    `held_back` has a row per user and a column per point: errors on ratings that were held back.
    They compare each user's choice with the point that is best for all users.
    """
    errors = tuple(mean_and_error(column)[0] for column in held_back.T)
    defined = [errors_of_user for errors_of_user in user_errors if errors_of_user is not None]
    if not defined or not math.isfinite(min(errors)):
        return None
    own_errors = tuple(mean_and_error(column)[0] for column in np.array(defined).T)
    users = np.arange(len(held_back))
    for_all = held_back[:, int(np.argmin(errors))]
    best, best_gain = None, 0.0
    for ratings in _TRUSTED_FROM:
        prior = ChoicePrior(errors, own_errors, ratings)
        chosen = [
            prior.best(errors_of_user, int(n))
            for errors_of_user, n in zip(user_errors, n_ratings, strict=True)
        ]
        gain, noise = mean_and_error(for_all - held_back[users, chosen])
        if gain > best_gain and gain > _EVIDENCE * noise:
            best, best_gain = prior, gain
    return best


def mean_and_error(values: Vector) -> tuple[float, float]:
    """Return the mean and its standard error; the order of the values does not matter.

    A mean over no value, or over one that is not finite, is infinite; so is the error of a mean
    over one value.
    """
    if len(values) == 0 or not np.isfinite(values).all():
        return math.inf, math.inf
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, math.inf
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / (len(values) - 1) / len(values))
