"""The prior of users from sums equals that of a plain loop, in any order of the sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spark_rank.features import user_prior
from spark_rank.features.user_prior import UserPrior, UserSums, sums_over_users

Array = NDArray[Any]
N_ITEMS, RANK = 15, 3


class Users:
    """Users with weights of their own, who rate items with known vectors."""

    def __init__(self, sizes: list[int], noise: float = 0.5, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.vectors = rng.normal(size=(N_ITEMS, RANK)).astype(np.float32)
        self.offsets = rng.normal(size=N_ITEMS) / 3
        self.chosen = [rng.integers(0, N_ITEMS, size).astype(np.int32) for size in sizes]
        self.spread = np.diag([0.3, 0.5, 0.1, 0.02])
        self.ratings = []
        for items in self.chosen:
            weights = rng.multivariate_normal(np.zeros(RANK + 1), self.spread)
            errors = rng.normal(0.0, noise**0.5, len(items))
            self.ratings.append(self.seen(items) @ weights + 0.2 + errors)

    def seen(self, items: Array) -> Array:
        return np.column_stack([np.ones(len(items)), self.vectors[items]])

    def sums(self, users: slice | Array, prior: UserPrior) -> UserSums:
        numbers = np.arange(len(self.chosen))[users]
        sizes = [len(self.chosen[u]) for u in numbers]
        return sums_over_users(
            self.vectors, self.offsets,
            np.concatenate([self.chosen[u] for u in numbers]),
            np.concatenate([self.ratings[u] for u in numbers]),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), prior,
        )  # fmt: skip

    def estimated(self, rounds: int) -> UserPrior:
        prior = UserPrior.start(RANK + 1)
        for _ in range(rounds):
            prior = self.sums(slice(None), prior).prior()
        return prior


def described(users: Users, items: Array) -> Array:
    size = len(items)
    sums = [*users.seen(items).sum(axis=0), users.offsets[items].sum()]
    return np.array([*(np.array(sums) / np.sqrt(size)), np.log(size)])


def naive_round(users: Users, prior: UserPrior) -> UserPrior:
    """Go from user to user, keep everything, and regress with scikit-learn."""
    rows, means, covariances, misfit = [], [], [], 0.0
    for items, ratings in zip(users.chosen, users.ratings, strict=True):
        if len(items) == 0:
            continue
        Z, x = users.seen(items), described(users, items)
        precision = np.linalg.inv(prior.covariance)
        covariance = np.linalg.inv(precision + Z.T @ Z / prior.noise)
        expected = x @ prior.slopes + prior.constants
        mean = covariance @ (precision @ expected + Z.T @ ratings / prior.noise)
        misfit += ((ratings - Z @ mean) ** 2).sum() + np.trace(Z @ covariance @ Z.T)
        rows.append(x), means.append(mean), covariances.append(covariance)
    model = make_pipeline(StandardScaler(), Ridge(alpha=100.0, solver="cholesky"))
    model.fit(rows, means)
    left = np.array(means) - model.predict(rows)
    constants = model.predict(np.zeros((1, RANK + 3)))[0]
    slopes = model.predict(np.eye(RANK + 3)) - constants
    spread = left.T @ left / len(rows) + np.mean(covariances, axis=0)
    return UserPrior(slopes, constants, spread, misfit / sum(map(len, users.chosen)))


def test_a_round_is_the_naive_one() -> None:
    users = Users([4, 1, 9, 0, 2, 30, 7, 3, 3, 12, 5, 1, 8])
    prior = UserPrior.start(RANK + 1)
    for _ in range(3):
        found, naive = users.sums(slice(None), prior).prior(), naive_round(users, prior)
        assert_allclose(found.slopes, naive.slopes, atol=2e-3)
        assert_allclose(found.constants, naive.constants, atol=2e-3)
        assert_allclose(found.covariance, naive.covariance, atol=1e-3)
        assert found.noise == pytest.approx(naive.noise, rel=1e-6)
        prior = found


def test_it_finds_what_generated_the_ratings() -> None:
    users = Users([12] * 1500)
    prior = users.estimated(15)
    assert prior.noise == pytest.approx(0.5, rel=0.05)
    # 1,500 users give a variance to 4 %; small ones shrink slowly from the start value, 0.1
    found = np.diag(prior.covariance)
    assert_allclose(found[:3], np.diag(users.spread)[:3], rtol=0.15)
    assert found[3] < 0.08
    # the mean of everybody's level, by way of any column that hardly differs between users
    x = described(users, users.chosen[0])
    assert (x @ prior.slopes + prior.constants)[0] == pytest.approx(0.2, abs=0.1)


def test_sums_have_no_order_and_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    users = Users(np.random.default_rng(0).integers(0, 40, 300).tolist())
    prior = users.estimated(1)
    whole = users.sums(slice(None), prior)
    order = np.random.default_rng(1).permutation(300)
    monkeypatch.setattr(user_prior, "_AT_ONCE", 100)
    parts = [users.sums(part, prior) for part in np.array_split(order, 7)]
    total = UserSums.none(RANK + 1)
    for part in parts:
        total = total.plus(UserSums.unpacked(part.packed(), RANK + 1))
    assert total.packed() == whole.packed()
    assert total.users == sum(len(items) > 0 for items in users.chosen)
    assert total.ratings == sum(map(len, users.chosen))


def test_whitened_weights_are_standard_and_noise_is_one() -> None:
    prior = Users([6] * 60).estimated(3)
    root, slopes, constants = prior.whitened()
    assert_allclose(root @ root.T, prior.covariance / prior.noise)
    rng = np.random.default_rng(0)
    z, x = rng.normal(size=(5, RANK + 1)), rng.normal(size=(4, RANK + 3))
    expected = (x @ prior.slopes + prior.constants) @ z.T
    assert_allclose((x @ slopes + constants) @ (z @ root).T, expected)


@pytest.mark.parametrize("sizes", [[1], [1, 1], [3]])
def test_few_ratings_that_say_nothing_leave_a_usable_prior(sizes: list[int]) -> None:
    users = Users(sizes)
    users.ratings = [np.zeros(size) for size in sizes]
    prior = users.estimated(30)
    assert prior.noise > 0.0
    assert np.isfinite(prior.whitened()[0]).all()
    assert_array_equal(prior.covariance, prior.covariance.T)
