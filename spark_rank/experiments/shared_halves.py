"""Splits every user's ratings into halves, and learns item features from the first halves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from spark_rank.experiments.frame import Study
from spark_rank.experiments.peers import FloatArray, IntArray, Split
from spark_rank.experiments.rating_set import RatingSet
from spark_rank.features.factor_model import FactorModel, SampledRatings, fit_factor_model

_DAMPING = 5.0


@dataclass(frozen=True)
class Task:
    """A user's halves, a row per item: features, expected ratings (the offset), ratings."""

    X: FloatArray
    offset: FloatArray
    y: FloatArray
    test_features: FloatArray
    test_offset: FloatArray
    test_y: FloatArray


def split_of(study: Study) -> Split:
    """Return every user's ratings, half of them held out, the same for every method."""
    return _split(study.data["ratings"], study.seed)


@lru_cache(maxsize=2)
def _split(ratings: RatingSet, seed: int) -> Split:
    study = Study("modern", None, seed, {})
    parts: list[tuple[IntArray, IntArray]] = []
    for user in range(ratings.n_users):
        places = np.arange(ratings.ends[user], ratings.ends[user + 1])
        rng = study.generator("halves", ratings.name, str(ratings.user_ids[user]))
        order = rng.permutation(places)
        half = (len(order) + 1) // 2
        parts.append((order[:half], order[half:]))
    first, second = (np.concatenate(half) for half in zip(*parts, strict=True))
    ends, test_ends = (
        np.concatenate([[0], np.cumsum([len(part[half]) for part in parts])]) for half in (0, 1)
    )
    values = ratings.ratings.astype(np.float64)
    return Split(
        ratings.items[first], values[first], ends, ratings.items[second], values[second],
        test_ends, ratings.n_items,
    )  # fmt: skip


@dataclass(frozen=True)
class FactorFeatures:
    """Whitened item factors, and the expected rating of an item by a user."""

    model: FactorModel
    features: FloatArray
    choice: FloatArray

    def task(self, split: Split, user: int) -> Task:
        """Return a user's halves; the offset is the item's bias plus the rating expected of a user.

        The expectation follows from the items that the user has rated.
        """
        own, held_out = rows_of(split, user)
        chosen = self.choice[split.items[own]].sum(axis=0) / np.sqrt(max(len(split.items[own]), 1))
        expected = chosen + self.choice[-2] + np.log(len(split.items[own])) * self.choice[-1]
        features = [self.features[split.items[own]], self.features[split.test_items[held_out]]]
        offsets = [
            self.model.bias[items] + rows @ expected
            for items, rows in zip(
                (split.items[own], split.test_items[held_out]), features, strict=True
            )
        ]
        return Task(
            features[0], offsets[0], split.ratings[own],
            features[1], offsets[1], split.test_ratings[held_out],
        )  # fmt: skip


@lru_cache(maxsize=2)
def factor_features(ratings: RatingSet, seed: int, rank: int, rounds: int) -> FactorFeatures:
    """Learn the factors of all items from all training ratings."""
    split = _split(ratings, seed)
    sample = SampledRatings(split.items, split.ratings, split.ends, split.n_items)
    model = fit_factor_model(sample, rank=rank, rounds=rounds, seed=seed)
    features, choice = model.whitened()
    return FactorFeatures(model, features, choice)


def reference_task(study: Study, split: Split, user: int, size: int, least: int) -> Task:
    """Return a user's halves with the training ratings of other users as features."""
    ratings = study.data["ratings"]
    reviewers = np.flatnonzero(np.diff(split.ends) >= least)
    rng = study.generator("references", ratings.name, str(ratings.user_ids[user]))
    others = reviewers[reviewers != user]
    chosen = np.sort(rng.choice(others, min(size, len(others)), replace=False))
    own, held_out = rows_of(split, user)
    items = np.concatenate([split.items[own], split.test_items[held_out]])
    middle = float(ratings.levels[0] + ratings.levels[-1]) / 2.0
    X = np.empty((len(items), len(chosen)))
    place = np.full(split.n_items, -1)
    place[items] = np.arange(len(items))
    for column, reviewer in enumerate(chosen):
        given = slice(split.ends[reviewer], split.ends[reviewer + 1])
        rows = place[split.items[given]]
        X[:, column] = np.median(split.ratings[given])
        X[rows[rows >= 0], column] = split.ratings[given][rows >= 0]
    half = own.stop - own.start
    offset = np.zeros(len(items))
    return Task(
        X[:half] - middle, offset[:half], split.ratings[own],
        X[half:] - middle, offset[half:], split.test_ratings[held_out],
    )  # fmt: skip


def rows_of(split: Split, user: int) -> tuple[slice, slice]:
    """Return where a user's training and held-out ratings are."""
    return (
        slice(int(split.ends[user]), int(split.ends[user + 1])),
        slice(int(split.test_ends[user]), int(split.test_ends[user + 1])),
    )


def item_offsets(split: Split) -> FloatArray:
    """Return the shrunken mean of user-centred training ratings of every item."""
    users = split.users()
    sizes = np.maximum(np.diff(split.ends), 1)
    means = np.bincount(users, weights=split.ratings, minlength=len(sizes)) / sizes
    counts = np.bincount(split.items, minlength=split.n_items)
    centred = split.ratings - means[users]
    sums = np.bincount(split.items, weights=centred, minlength=split.n_items)
    return np.asarray(sums / (counts + _DAMPING))
