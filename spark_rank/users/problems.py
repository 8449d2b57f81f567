"""Turns a batch of user blocks into learning problems with each user's rows of the features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.features.expected import expected_scores
from spark_rank.features.files import ItemFeatures
from spark_rank.features.gathering import gatherable, gathered_rows
from spark_rank.users.batches import ragged

# the optional column of blocks with the weights of the ratings
WEIGHTS = "weights"


@dataclass(frozen=True)
class Problem:
    """One user's learning problem; the first `n_train` rows are for training.

    `full_offset` are the scores before learning: the item offset plus the prior of the user.
    `reviewers` are the numbers of the reviewers whose ratings the features are, or None where all
    users have the same features. `excluded_feature` is the feature made of the user's own
    ratings, if there is one.
    """

    user: int
    user_id: str
    items: NDArray[np.int32]
    ratings: NDArray[np.float64]
    n_train: int
    X: NDArray[np.float64]
    offset: NDArray[np.float64]
    full_offset: NDArray[np.float64]
    expected: NDArray[np.float64] | None
    excluded_feature: int | None
    reviewers: NDArray[np.int32] | None = None
    weights: NDArray[np.float64] | None = None

    @property
    def train(self) -> slice:
        """Rows to learn from."""
        return slice(0, self.n_train)

    @property
    def test(self) -> slice:
        """Held-out rows."""
        return slice(self.n_train, None)


@dataclass(frozen=True)
class Users:
    """The blocks of some users: the ratings of user u are ends[u] to ends[u + 1]."""

    users: list[int]
    user_ids: list[str]
    ends: NDArray[np.int64]
    n_train: NDArray[np.int64]
    items: NDArray[np.int32]
    ratings: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Users:
        """Read a batch of blocks."""
        items, ends = ragged(batch.column("items"))
        return cls(
            batch.column("user").to_pylist(),
            batch.column("user_id").to_pylist(),
            ends,
            batch.column("n_train").to_numpy().astype(np.int64),
            items,
            ragged(batch.column("ratings"))[0].astype(np.float64),
            ragged(batch.column(WEIGHTS))[0] if WEIGHTS in batch.schema.names else None,
        )

    def one_by_one(self) -> Iterator[Users]:
        """Yield every user alone."""
        for row in range(len(self.users)):
            entries = slice(self.ends[row], self.ends[row + 1])
            yield Users(
                self.users[row : row + 1], self.user_ids[row : row + 1],
                self.ends[row : row + 2] - self.ends[row], self.n_train[row : row + 1],
                self.items[entries], self.ratings[entries],
                None if self.weights is None else self.weights[entries],
            )  # fmt: skip


@dataclass(frozen=True)
class ProblemGroup:
    """Problems of several users in shared arrays, one user after the other.

    The features of a rating are the row of `matrix` that `rows` names, with 0 in the user's
    `excluded` column; a negative number means that there is none. The rows are gathered only when
    a problem is yielded: they need more memory than everything else. A user whose `reviewers`
    differ from those of others has a group of one.
    """

    blocks: Users
    matrix: NDArray[np.floating[Any]]
    rows: NDArray[np.int32]
    excluded: NDArray[np.int64]
    offset: NDArray[np.float64]
    full_offset: NDArray[np.float64]
    expected: NDArray[np.float64] | None
    reviewers: NDArray[np.int32] | None

    def excluded_features(self) -> list[int | None]:
        """Return every user's excluded column, or None."""
        return [None if column < 0 else column for column in self.excluded.tolist()]

    def problems(self, wanted: NDArray[np.bool_] | None = None) -> Iterator[tuple[int, Problem]]:
        """Yield each user's position in the group and problem; with `wanted`, only these users."""
        blocks, excluded = self.blocks, self.excluded_features()
        users = range(len(blocks.users)) if wanted is None else np.flatnonzero(wanted).tolist()
        for user in users:
            part = slice(int(blocks.ends[user]), int(blocks.ends[user + 1]))
            X = gathered_rows(self.matrix, self.rows[part])
            if excluded[user] is not None:
                X[:, excluded[user]] = 0.0
            yield user, Problem(
                blocks.users[user], blocks.user_ids[user], blocks.items[part], blocks.ratings[part],
                int(blocks.n_train[user]), X, self.offset[part], self.full_offset[part],
                None if self.expected is None else self.expected[user],
                excluded[user], self.reviewers,
                None if blocks.weights is None else blocks.weights[part],
            )  # fmt: skip


def problem_groups(
    batch: pa.RecordBatch, features: ItemFeatures, panel: Mapping[int, int]
) -> Iterator[ProblemGroup]:
    """Yield groups of learning problems from a batch of user blocks.

    `panel` has the feature column of each reviewer by user number: a reviewer's ratings must not
    predict themselves. Where each user has other reviewers it is not used, since nobody is his or
    her own reviewer, and users come one by one.
    """
    if batch.num_rows == 0:
        return
    users = Users.of(batch)
    if features.pool is None:
        yield _group(users, features, features.matrix, users.items, panel)
        return
    for alone in users.one_by_one():
        reviewers = features.reviewers(alone.users[0], alone.user_ids[0])
        matrix = features.rows(alone.items, reviewers)
        rows = np.arange(len(matrix), dtype=np.int32)
        yield replace(_group(alone, features, matrix, rows, {}), reviewers=reviewers)


def _group(
    blocks: Users,
    features: ItemFeatures,
    matrix: NDArray[np.floating[Any]],
    rows: NDArray[np.int32],
    panel: Mapping[int, int],
) -> ProblemGroup:
    matrix, rows = gatherable(matrix, rows)
    excluded = np.array([panel.get(user, -1) for user in blocks.users], dtype=np.int64)
    offset = np.asarray(features.offset[blocks.items])
    full = offset
    expected = features.expected_of_users(blocks.items, blocks.ends, blocks.n_train)
    if expected is not None:
        full = offset + expected_scores(matrix, rows, excluded, expected, blocks.ends)
    return ProblemGroup(blocks, matrix, rows, excluded, offset, full, expected, None)


def problems(
    batch: pa.RecordBatch, features: ItemFeatures, panel: Mapping[int, int]
) -> Iterator[Problem]:
    """Yield each user's problem."""
    for group in problem_groups(batch, features, panel):
        yield from (problem for _, problem in group.problems())
