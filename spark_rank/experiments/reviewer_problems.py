"""The set-up of Cortes, Mohri and Rastogi: a test reviewer's items described by other reviewers.

Learners learn from half of a test reviewer's ratings and predict the other half. The features of an
item are the ratings of reference reviewers, all of whose ratings are known. If a reference reviewer
has not rated an item, the feature is the median of the reviewer's ratings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.experiments.frame import Result, Study
from spark_rank.experiments.rating_set import UserRatings
from spark_rank.metrics import (
    mean_1norm_difference,
    mean_squared_difference,
    pairwise_misranking,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

METRICS = ("MSD", "M1D", "misranking")
TIED = "tied pairs"  # not a metric of the paper: it explains the misranking


@dataclass(frozen=True)
class Problem:
    """The training part and the held-out part of a reviewer's ratings, one row per item."""

    X: FloatArray
    y: FloatArray
    test_items: FloatArray
    test_ratings: FloatArray


@dataclass(frozen=True)
class Sample:
    """Test reviewers by repeat, and the other reviewers on whom parameters are chosen."""

    held_out: IntArray
    repeats: tuple[IntArray, ...]


def users_between(ratings: UserRatings, least: int, most: int) -> IntArray:
    """Return the users with `least` to `most` ratings."""
    counts = ratings.n_ratings
    return np.flatnonzero((counts >= least) & (counts <= most))


def draw_reviewers(
    study: Study, eligible: IntArray, *, held_out: int, repeats: int, size: int, keys: Sequence[str]
) -> Sample:
    """Draw the held-out sample and the test reviewers of every repeat.

    If there are enough reviewers, repeats have none in common; otherwise each repeat is drawn from
    all who are not held out. At most a quarter of the eligible are held out.
    """
    order = study.generator(*keys, "reviewers").permutation(eligible)
    n_held_out = min(held_out, len(order) // 4)
    remaining = order[n_held_out:]
    if len(remaining) >= repeats * size:
        parts = [remaining[repeat * size : (repeat + 1) * size] for repeat in range(repeats)]
    else:
        parts = [
            study.generator(*keys, "repeat", repeat).permutation(remaining)[:size]
            for repeat in range(repeats)
        ]
    return Sample(np.sort(order[:n_held_out]), tuple(np.sort(part) for part in parts))


def draw_problem(
    study: Study, ratings: UserRatings, user: int, reviewers: IntArray, size: int, *keys: int | str
) -> Problem:
    """Draw a user's halves and `size` of the reviewers, never the user; `keys` name the draw.

    The halves depend only on the user and the seed: they are the same for every group of
    reviewers.
    """
    user_id = str(ratings.user_ids[user])
    items, values = ratings.of_user(user)
    order = study.generator("halves", ratings.name, user_id).permutation(len(items))
    items, y = items[order], values[order].astype(np.float64)
    others = reviewers[reviewers != user]
    rng = study.generator("references", ratings.name, user_id, *keys)
    chosen = np.sort(rng.choice(others, min(size, len(others)), replace=False))
    X = ratings.columns_of(chosen, items, medians_of(ratings, chosen))
    half = len(items) // 2
    return Problem(X[:half], y[:half], X[half:], y[half:])


def medians_of(ratings: UserRatings, users: IntArray) -> FloatArray:
    """Return the median rating of every user."""
    return np.array([np.median(ratings.of_user(int(user))[1]) for user in users])


def measured(scores: FloatArray, ratings: FloatArray) -> Mapping[str, float | None]:
    """Return the paper's three metrics (67-69) of scores on held-out ratings."""
    return {
        "MSD": mean_squared_difference(scores, ratings),
        "M1D": mean_1norm_difference(scores, ratings),
        "misranking": pairwise_misranking(scores, ratings),
    }


def tied_pairs(scores: FloatArray, ratings: FloatArray) -> float | None:
    """Return the share of the pairs of unequal ratings whose scores are equal.

    They are misranked by the scores and by the negative scores. None if all ratings are equal.
    """
    forwards, backwards = (pairwise_misranking(signed, ratings) for signed in (scores, -scores))
    return None if forwards is None or backwards is None else forwards + backwards - 1.0


def results_of(scores: Mapping[str, FloatArray], problem: Problem, **where: Any) -> list[Result]:
    """Return a result per method and metric; `where` are further fields of each."""
    ratings = problem.test_ratings
    return [
        Result(
            method,
            metric,
            value,
            detail="the held-out ratings are all equal" if value is None else None,
            **where,
        )
        for method, values in scores.items()
        for metric, value in {
            **measured(values, ratings),
            TIED: tied_pairs(values, ratings),
        }.items()
    ]
