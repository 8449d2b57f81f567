"""From a batch of user blocks to learning problems: each user's rows of the feature files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.engine.batches import ragged
from spark_rank.features.files import ItemFeatures


@dataclass(frozen=True)
class Problem:
    """One user's learning problem; the first `n_train` rows are for training.

    `reviewers` are the numbers of the reviewers whose ratings the features are, or None where all
    users have the same features. Of these `excluded_feature` is the user's own, if there is one.
    """

    user: int
    user_id: str
    items: NDArray[np.int32]
    ratings: NDArray[np.float64]
    n_train: int
    X: NDArray[np.float64]
    offset: NDArray[np.float64]
    expected: NDArray[np.float64] | None
    excluded_feature: int | None
    reviewers: NDArray[np.int32] | None = None

    @property
    def train(self) -> slice:
        """Rows to learn from."""
        return slice(0, self.n_train)

    @property
    def test(self) -> slice:
        """Held-out rows."""
        return slice(self.n_train, None)

    @cached_property
    def full_offset(self) -> NDArray[np.float64]:
        """Scores before learning: the item offset, and what is expected of the user."""
        return self.offset if self.expected is None else self.offset + self.X @ self.expected


def problems(
    batch: pa.RecordBatch, features: ItemFeatures, panel: Mapping[int, int]
) -> Iterator[Problem]:
    """Gather each user's rows of the feature files.

    `panel` tells which column is a user's own; where every user has other reviewers it tells
    nothing, for they are never the user.
    """
    items, ends = ragged(batch.column("items"))
    ratings, _ = ragged(batch.column("ratings"))
    users = batch.column("user").to_pylist()
    user_ids = batch.column("user_id").to_pylist()
    sizes = batch.column("n_train").to_pylist()
    for row, user in enumerate(users):
        own = slice(ends[row], ends[row + 1])
        reviewers = features.reviewers(user, user_ids[row])
        X = features.rows(items[own], reviewers)
        # a reviewer's own ratings must not predict themselves: that column says nothing
        excluded = panel.get(user) if reviewers is None else None
        if excluded is not None:
            X[:, excluded] = 0.0
        yield Problem(
            user, user_ids[row], items[own], ratings[own].astype(np.float64), sizes[row], X,
            np.asarray(features.offset[items[own]]),
            features.expected_weights(items[own][: sizes[row]]), excluded, reviewers,
        )  # fmt: skip
