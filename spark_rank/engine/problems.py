"""From a batch of user blocks to learning problems: each user's rows of the feature files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.engine.batches import ragged
from spark_rank.features.expected import expected_scores
from spark_rank.features.files import ItemFeatures

_CELLS = 1 << 18  # features of as many users as this many numbers hold are gathered at once


@dataclass(frozen=True)
class Problem:
    """One user's learning problem; the first `n_train` rows are for training.

    `full_offset` are the scores before learning: the item offset, and what is expected of the
    user. `reviewers` are the numbers of the reviewers whose ratings the features are, or None
    where all users have the same features. Of these `excluded_feature` is the user's own, if
    there is one.
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
    """The blocks of some users: user u owns the places ends[u] to ends[u + 1]."""

    users: list[int]
    user_ids: list[str]
    ends: NDArray[np.int64]
    n_train: NDArray[np.int64]
    items: NDArray[np.int32]
    ratings: NDArray[np.float64]

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
        )

    def part(self, first: int, last: int) -> Users:
        """Return the users from `first` to before `last`."""
        own = slice(self.ends[first], self.ends[last])
        return Users(
            self.users[first:last], self.user_ids[first:last],
            self.ends[first : last + 1] - self.ends[first], self.n_train[first:last],
            self.items[own], self.ratings[own],
        )  # fmt: skip

    def cut(self, most: int) -> Iterator[Users]:
        """Yield the users in parts with at most so many ratings, or of one user."""
        first = 0
        while first < len(self.users):
            last = int(np.searchsorted(self.ends, self.ends[first] + most, side="right")) - 1
            last = max(last, first + 1)
            yield self.part(first, last)
            first = last

    def one_by_one(self) -> Iterator[Users]:
        """Yield every user alone."""
        return (self.part(row, row + 1) for row in range(len(self.users)))


@dataclass(frozen=True)
class ProblemGroup:
    """Problems whose arrays are parts of common ones, one user after the other.

    With `reviewers` of his or her own, a user is alone.
    """

    blocks: Users
    X: NDArray[np.float64]
    offset: NDArray[np.float64]
    full_offset: NDArray[np.float64]
    expected: NDArray[np.float64] | None
    excluded_features: list[int | None]
    reviewers: NDArray[np.int32] | None

    def problems(self, wanted: NDArray[np.bool_] | None = None) -> Iterator[tuple[int, Problem]]:
        """Yield each user's with its place in the group; if that is asked, of `wanted` users."""
        blocks = self.blocks
        rows = range(len(blocks.users)) if wanted is None else np.flatnonzero(wanted).tolist()
        for row in rows:
            own = slice(int(blocks.ends[row]), int(blocks.ends[row + 1]))
            yield row, Problem(
                blocks.users[row], blocks.user_ids[row], blocks.items[own], blocks.ratings[own],
                int(blocks.n_train[row]), self.X[own], self.offset[own], self.full_offset[own],
                None if self.expected is None else self.expected[row],
                self.excluded_features[row], self.reviewers,
            )  # fmt: skip


def problem_groups(
    batch: pa.RecordBatch, features: ItemFeatures, panel: Mapping[int, int]
) -> Iterator[ProblemGroup]:
    """Gather the users' rows of the feature files.

    `panel` tells which column is a user's own; where every user has other reviewers it tells
    nothing, for they are never the user. Such users come one by one.
    """
    users = Users.of(batch)
    if features.pool is not None:
        for alone in users.one_by_one():
            reviewers = features.reviewers(alone.users[0], alone.user_ids[0])
            yield _gathered(alone, features, [None], reviewers)
        return
    for some in users.cut(_CELLS // max(features.matrix.shape[1], 1)):
        yield _gathered(some, features, [panel.get(user) for user in some.users], None)


def _gathered(
    blocks: Users,
    features: ItemFeatures,
    excluded: list[int | None],
    reviewers: NDArray[np.int32] | None,
) -> ProblemGroup:
    X = features.rows(blocks.items, reviewers)
    for row, column in enumerate(excluded):
        if column is not None:
            # a reviewer's own ratings must not predict themselves: that column says nothing
            X[blocks.ends[row] : blocks.ends[row + 1], column] = 0.0
    offset = np.asarray(features.offset[blocks.items])
    expected = features.expected_of_users(blocks.items, blocks.ends, blocks.n_train)
    full = offset if expected is None else offset + expected_scores(X, expected, blocks.ends)
    return ProblemGroup(blocks, X, offset, full, expected, excluded, reviewers)


def problems(
    batch: pa.RecordBatch, features: ItemFeatures, panel: Mapping[int, int]
) -> Iterator[Problem]:
    """Yield each user's problem."""
    for group in problem_groups(batch, features, panel):
        yield from (problem for _, problem in group.problems())
