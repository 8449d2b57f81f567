"""Blocks become learning problems with the right features, rows and exclusions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.testing import assert_array_equal

from spark_rank.features.files import ItemFeatures
from spark_rank.features.pool import ReviewerPool, id_keys
from spark_rank.users.problems import Problem, problems

N_ITEMS, D = 12, 4
RNG = np.random.default_rng(0)
SHARED = ItemFeatures(
    RNG.normal(size=(N_ITEMS, D)).astype(np.float32),
    RNG.normal(size=N_ITEMS),
    np.empty((0, D), dtype=np.float32),
    pa.array([f"i{n}" for n in range(N_ITEMS)]),
)
# reviewer r is user 10 + r, has rated the items r and r + 1, and shows 0.5 for all others
POOL = ReviewerPool(
    ends=np.arange(0, 17, 2),
    items=np.array([[r, r + 1] for r in range(8)], dtype=np.int32).ravel(),
    ratings=np.array([[-r, r] for r in range(8)], dtype=np.float32).ravel(),
    missing=np.full(8, 0.5, dtype=np.float32),
    users=np.arange(10, 18, dtype=np.int32),
    keys=id_keys([f"u{10 + r}" for r in range(8)]),
    size=3,
    seed=1,
)
OWN = replace(SHARED, matrix=SHARED.matrix[:, :0], prior=SHARED.prior[:, :0], pool=POOL)
USERS = [(12, [3, 0, 2, 9], [5.0, 1.0, 2.0, 4.0], 3), (99, [1], [3.0], 1), (13, [], [], 0)]


def made(features: ItemFeatures, panel: dict[int, int]) -> list[Problem]:
    batch = pa.record_batch(
        {
            "user": pa.array([user for user, *_ in USERS], pa.int32()),
            "user_id": pa.array([f"u{user}" for user, *_ in USERS]),
            "items": pa.array([items for _, items, _, _ in USERS], pa.list_(pa.int32())),
            "ratings": pa.array([ratings for _, _, ratings, _ in USERS], pa.list_(pa.float32())),
            "n_train": pa.array([n for *_, n in USERS], pa.int32()),
        }
    )
    return list(problems(batch, features, panel))


def test_shared_features_are_rows_of_the_matrix_but_for_ones_own_column() -> None:
    first, second, empty = made(SHARED, {12: 1, 13: 0})
    expected = SHARED.matrix[[3, 0, 2, 9]].astype(float)
    expected[:, 1] = 0.0
    assert_array_equal(first.X, expected)
    assert_array_equal(second.X, SHARED.matrix[[1]])
    assert (first.excluded_feature, second.excluded_feature) == (1, None)
    assert first.reviewers is None
    assert (empty.X.shape, empty.excluded_feature) == ((0, D), 0)


def test_every_user_has_the_ratings_of_reviewers_of_his_own() -> None:
    # a pool is listed in the table `panel`, too, but its numbers are not columns
    panel = {user: number for number, user in enumerate(POOL.users.tolist())}
    for problem, (user, items, _, n_train) in zip(made(OWN, panel), USERS, strict=True):
        assert problem.reviewers is not None
        reviewers = problem.reviewers.tolist()
        assert (len(set(reviewers)), problem.excluded_feature) == (3, None)
        assert user not in POOL.users[reviewers]
        by_hand = [
            [-r if item == r else r if item == r + 1 else 0.5 for r in reviewers] for item in items
        ]
        assert_array_equal(problem.X, np.array(by_hand, dtype=float).reshape(len(items), 3))
        assert_array_equal(problem.offset, SHARED.offset[items])
        assert len(problem.X[problem.train]) == n_train
        assert problem.expected is None
