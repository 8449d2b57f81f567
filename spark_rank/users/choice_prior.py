"""What a sample of users tells about a grid before one user's own errors are looked at.

A user's own errors (leave-pair-out, folds) have two faults: the item features have already seen the
ratings that are left out, which favours points that fit closely, and a few dozen ratings are noise.
So a user starts from the sample's errors on ratings that no feature has seen, and moves away from
them only by how far his or her own errors differ from those of the sample's users: what all users
share, optimism too, cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_rank.records.models import PriorFacts

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# how many ratings count as much as the sample; the sample's users decide which of these is best
_TRUSTED_FROM = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
# a gain of fewer standard errors than this is no evidence
_EVIDENCE = 2.0


@dataclass(frozen=True)
class ChoicePrior:
    """A sample's errors at every point of a grid, infinite where a point cannot be learned.

    `errors` are means over users on ratings that were held back, `own_errors` means of the users'
    own errors; with `ratings` training ratings a user's difference from these counts half.
    """

    errors: tuple[float, ...]
    own_errors: tuple[float, ...]
    ratings: float

    @classmethod
    def from_facts(cls, facts: PriorFacts) -> ChoicePrior:
        """Rebuild from what `to_facts` put into a manifest."""
        errors, own_errors = (
            tuple(math.inf if value is None else value for value in values)
            for values in (facts.errors, facts.own_errors)
        )
        return cls(errors, own_errors, facts.ratings)

    def to_facts(self) -> PriorFacts:
        """Return a form for the manifest, None for what is infinite."""
        errors, own_errors = (
            tuple(value if math.isfinite(value) else None for value in values)
            for values in (self.errors, self.own_errors)
        )
        return PriorFacts(errors, own_errors, self.ratings)

    def best(self, own: Vector | None, n_ratings: int) -> int:
        """Return the best point for a user with these own errors; None: they cannot be told."""
        errors = np.array(self.errors)
        if own is None:
            return int(np.argmin(errors))
        usual = np.array(self.own_errors)
        known = np.isfinite(errors) & np.isfinite(usual) & np.isfinite(own)
        if not known.any():
            return int(np.argmin(errors))
        trust = n_ratings / (n_ratings + self.ratings)
        moved = np.full(len(errors), np.inf)
        moved[known] = errors[known] + trust * (own[known] - usual[known])
        return int(np.argmin(moved))


def measured_prior(
    held_back: Matrix, own: list[Vector | None], n_ratings: NDArray[np.int64]
) -> ChoicePrior | None:
    """Return the prior under which users of the sample choose best; None if one point is as good.

    `held_back` has a row per user and a column per point: errors on ratings that were held back.
    Choices by the users' own errors are compared there with the best point for all, pair by pair.
    """
    errors = tuple(mean_and_error(column)[0] for column in held_back.T)
    told = [one for one in own if one is not None]
    if not told or not math.isfinite(min(errors)):
        return None
    own_errors = tuple(mean_and_error(column)[0] for column in np.array(told).T)
    users = np.arange(len(held_back))
    for_all = held_back[:, int(np.argmin(errors))]
    best, most = None, 0.0
    for ratings in _TRUSTED_FROM:
        prior = ChoicePrior(errors, own_errors, ratings)
        chosen = [prior.best(one, int(n)) for one, n in zip(own, n_ratings, strict=True)]
        gain, noise = mean_and_error(for_all - held_back[users, chosen])
        if gain > most and gain > _EVIDENCE * noise:
            best, most = prior, gain
    return best


def mean_and_error(values: Vector) -> tuple[float, float]:
    """Return the mean and its standard error, the same in whatever order the values come.

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
