"""The factor model equals a naive twin, recovers the generating model and never returns NaN."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spark_rank.errors import InputDataError
from spark_rank.features import factor_model
from spark_rank.features.factor_model import FactorModel, SampledRatings, fit_factor_model

Array = NDArray[Any]
TINY_ITEMS, UNRATED = 14, 9


def sampled(users: list[tuple[Array, Array]], n_items: int) -> SampledRatings:
    """Join (items, ratings) of every user."""
    sizes = [len(items) for items, _ in users]
    return SampledRatings(
        np.concatenate([items for items, _ in users]).astype(np.int32),
        np.concatenate([ratings for _, ratings in users]).astype(np.float64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        n_items,
    )


def tiny(sizes: list[int], seed: int = 3) -> SampledRatings:
    """Draw users of two camps, of these sizes, and stars; one item is never rated."""
    rng = np.random.default_rng(seed)
    rated = np.delete(np.arange(TINY_ITEMS), UNRATED)
    users = []
    for user, size in enumerate(sizes):
        items = rng.choice(rated, size, replace=False)
        liked = (items + user) % 2 == 0
        users.append((items, np.where(liked, 4, 2) + rng.integers(-1, 2, size)))
    return sampled(users, TINY_ITEMS)


MIXED = tiny([6, 1, 13, 0, 4, 9, 2, 7, 11, 5, 3, 8])  # one rating, no rating, all items
ALIKE = tiny([5] * 12)  # all users have equally many ratings: columns without a spread


def of_user(data: SampledRatings, user: int) -> slice:
    return slice(int(data.ends[user]), int(data.ends[user + 1]))


def prior_mean(choice: Array, items: Array) -> Array:
    """Add up what `choice` promises, item by item."""
    total = choice[-2].copy()
    for item in items:
        total += choice[item] / np.sqrt(len(items))
    return total + choice[-1] * np.log(len(items)) if len(items) else total


def posterior_mean(model: FactorModel, S: Array, m: Array, items: Array, ratings: Array) -> Array:
    """Solve for one user's weights under the prior N(m, S)."""
    Z, target = model.factors[items], ratings - model.mean - model.bias[items]
    precision = np.linalg.inv(S)
    right = precision @ m + Z.T @ target / model.noise
    return np.linalg.solve(precision + Z.T @ Z / model.noise, right)


def triples_of(data: SampledRatings, mean: float) -> list[tuple[int, int, float]]:
    return [
        (user, int(data.items[place]), data.ratings[place] - mean)
        for user in range(data.n_users)
        for place in range(data.ends[user], data.ends[user + 1])
    ]


def regressed(seen: Array, targets: Array) -> tuple[Any, Array]:
    """Return scikit-learn's ridge regression on standardised columns, and what it predicts."""
    regression = make_pipeline(StandardScaler(), Ridge(alpha=100.0, solver="cholesky"))
    regression.fit(seen, targets)
    # it drops an axis of length 1
    return regression, regression.predict(seen).reshape(targets.shape)


# --- the naive twin ------------------------------------------------------------------------


class Twin:
    """The model as one product: r − mean = a_i·c_u + noise, a = (b, 1, f) and c = (1, w_0, w).

    The 1s are certain (their rows of the covariances are 0), the rest is free. With second
    moments A = E[aaᵀ] and C = E[ccᵀ], E[(t − a·c)²] = t² − 2t E[a]·E[c] + tr(AC); minimising it
    over the free part of one vector gives every formula.
    """

    def __init__(self, data: SampledRatings, start: FactorModel) -> None:
        n, d = data.n_items, start.factors.shape[1]
        self.data, self.mean, self.noise, self.S = data, start.mean, start.noise, start.covariance
        self.a = np.column_stack([start.bias, start.factors])
        self.a_cov = np.zeros((n, d + 1, d + 1))
        self.c = np.zeros((data.n_users, d + 1))
        self.c_cov = np.zeros((data.n_users, d + 1, d + 1))
        self.m = np.zeros((data.n_users, d))
        self.t = np.zeros((n, d))
        self.item_prior = np.diag([0.25 * data.ratings.var()] + [0.0125] * (d - 1))
        self.item_free = np.array([0, *range(2, d + 1)])
        self.user_free = np.arange(1, d + 1)
        self.triples = triples_of(data, self.mean)

    def end(self) -> None:
        """Give items without ratings what a regression on the content alone expects."""
        content, rated = self.data.content, sorted(self.a_free)
        if content is None:
            return
        means = np.array([self.a_free[item][0] for item in rated])
        regression, _ = regressed(content[rated], means)
        for item in set(range(self.data.n_items)) - set(rated):
            self.t[item] = regression.predict(content[[item]])[0]
            self.a[item, self.item_free] = self.t[item]

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            self.users()
            self.choices()
            self.items()
            self.raters()

    def users(self) -> None:
        for user in range(self.data.n_users):
            pairs = [(self.a[i], self.a_cov[i], t) for u, i, t in self.triples if u == user]
            mean, cov = self.posterior(pairs, self.S, self.m[user], self.user_free, 0)
            self.c[user] = [1.0, *mean]
            self.c_cov[user][1:, 1:] = cov

    def chosen(self, data: SampledRatings) -> Array:
        seen = []
        for user in range(data.n_users):
            items = data.items[of_user(data, user)]
            n = max(len(items), 1)
            total = np.zeros(self.a.shape[1])
            for item in items:
                total += self.a[item] / np.sqrt(n)
            seen.append([*total, np.log(n)])
        return np.array(seen)

    def choices(self) -> None:
        w = self.c[:, 1:]
        chosen = self.chosen(self.data)
        regression, self.m = regressed(chosen, w)
        self.regression, self.regressed_on = regression, self.a.copy()
        spreads = [
            self.c_cov[user][1:, 1:] + np.outer(w[user] - self.m[user], w[user] - self.m[user])
            for user in range(self.data.n_users)
        ]
        self.S = np.mean(spreads, axis=0)

    def items(self) -> None:
        rated = sorted({i for _, i, _ in self.triples})
        self.prior_in_use = self.item_prior
        self.a_free = {}
        for item in rated:
            pairs = [(self.c[u], self.c_cov[u], t) for u, i, t in self.triples if i == item]
            mean, cov = self.posterior(pairs, self.item_prior, self.t[item], self.item_free, 1)
            self.a[item, self.item_free] = mean
            self.a_cov[item][np.ix_(self.item_free, self.item_free)] = cov
            self.a_free[item] = mean, cov
        misfits = []
        for u, i, t in self.triples:
            A = self.a_cov[i] + np.outer(self.a[i], self.a[i])
            C = self.c_cov[u] + np.outer(self.c[u], self.c[u])
            misfits.append(t**2 - 2 * t * self.a[i] @ self.c[u] + np.trace(A @ C))
        self.noise = float(np.mean(misfits))

    def known_raters(self, data: SampledRatings) -> Array:
        """Return the predictors of every rated item, from the prior means of its raters."""
        seen = []
        for item in sorted({*data.items.tolist()}):
            raters = [u for u in range(data.n_users) if item in data.items[of_user(data, u)]]
            total = sum((self.m[u] for u in raters), np.zeros(self.m.shape[1]))
            content = [] if data.content is None else data.content[item]
            seen.append([*(total / np.sqrt(len(raters))), np.log(len(raters)), *content])
        return np.array(seen)

    def raters(self) -> None:
        rated = sorted(self.a_free)
        means = np.array([self.a_free[item][0] for item in rated])
        self.item_regression, expected = regressed(self.known_raters(self.data), means)
        self.t[rated] = expected
        spreads = [
            cov + np.outer(mean - self.t[item], mean - self.t[item])
            for item, (mean, cov) in self.a_free.items()
        ]
        self.item_prior = np.mean(spreads, axis=0)

    def go_on_with(self, data: SampledRatings, mean: float) -> None:
        """See the ratings of other users from now on: an item without any so far is its prior."""
        unrated = np.bincount(self.data.items, minlength=data.n_items) == 0
        self.a_cov[np.ix_(unrated, self.item_free, self.item_free)] = self.prior_in_use
        # the last regression was on the items as they were before their own update
        self.a, latest = self.regressed_on, self.a
        expected = self.regression.predict(self.chosen(data))
        width = self.c.shape[1]
        self.a, self.m = latest, expected.reshape(data.n_users, width - 1)
        rated = np.bincount(data.items, minlength=data.n_items) > 0
        self.t = np.zeros((data.n_items, width - 1))
        expected = self.item_regression.predict(self.known_raters(data))
        self.t[rated] = expected.reshape(-1, width - 1)
        self.data, self.mean = data, mean
        self.c = np.zeros((data.n_users, width))
        self.c_cov = np.zeros((data.n_users, width, width))
        self.triples = triples_of(data, mean)

    def posterior(
        self, pairs: list[Any], prior: Array, at: Array, free: Array, one: int
    ) -> tuple[Array, Array]:
        """Multiply N(at, prior) with the expected likelihood; `one` is the place of the own 1."""
        precision = np.linalg.inv(prior)
        right = precision @ at
        for other, cov, t in pairs:
            moment = cov + np.outer(other, other)
            precision = precision + moment[np.ix_(free, free)] / self.noise
            right = right + (t * other[free] - moment[free, one]) / self.noise
        cov = np.linalg.inv(precision)
        return cov @ right, cov


@pytest.mark.parametrize("rank", [0, 1, 3])
@pytest.mark.parametrize("rounds", [1, 2, 6])
@pytest.mark.parametrize("data", [MIXED, ALIKE], ids=["mixed", "alike"])
def test_rounds_of_em_are_those_of_the_naive_twin(
    data: SampledRatings, rounds: int, rank: int
) -> None:
    twin = Twin(data, fit_factor_model(data, rank=rank, rounds=0, seed=5))
    twin.run(rounds)
    assert_twins(twin, fit_factor_model(data, rank=rank, rounds=rounds, seed=5))


CONTENT = np.random.default_rng(8).integers(0, 2, (TINY_ITEMS, 3)).astype(float)


@pytest.mark.parametrize("rank", [0, 2])
def test_rounds_with_content_are_those_of_the_naive_twin(rank: int) -> None:
    data = replace(MIXED, content=CONTENT)
    twin = Twin(data, fit_factor_model(data, rank=rank, rounds=0, seed=5))
    twin.run(4)
    twin.end()
    model = fit_factor_model(data, rank=rank, rounds=4, seed=5)
    assert_twins(twin, model)
    assert model.bias[UNRATED] != 0.0
    assert (model.bias != fit_factor_model(MIXED, rank=rank, rounds=4, seed=5).bias).all()


class UnchosenTwin(Twin):
    """Nobody's choice says anything: users and items start from the means of all."""

    def choices(self) -> None:
        w = self.c[:, 1:]
        self.m = np.tile(w.mean(axis=0), (len(w), 1))
        self.S = np.mean(self.c_cov[:, 1:, 1:], axis=0) + np.cov(w.T, bias=True)

    def raters(self) -> None:
        rated = sorted(self.a_free)
        means = np.array([self.a_free[item][0] for item in rated])
        self.t[rated] = means.mean(axis=0)
        spread = np.mean([cov for _, cov in self.a_free.values()], axis=0)
        self.item_prior = spread + np.cov(means.T, bias=True)


def test_without_choices_users_and_items_start_from_the_means_of_all() -> None:
    twin = UnchosenTwin(MIXED, fit_factor_model(MIXED, rank=2, rounds=0, seed=5))
    twin.run(4)
    model = fit_factor_model(MIXED, rank=2, rounds=4, seed=5, choices=False)
    assert_twins(twin, model)
    np.testing.assert_array_equal(model.choice[:-2], 0.0)


def assert_twins(twin: Twin, model: FactorModel) -> None:
    data = twin.data
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(model.bias, twin.a[:, 0], **close)
    np.testing.assert_allclose(model.factors, twin.a[:, 1:], **close)
    np.testing.assert_allclose(model.item_means, twin.t, **close)
    np.testing.assert_allclose(model.covariance, twin.S, **close)
    np.testing.assert_allclose(model.noise, twin.noise, **close)
    # `choice` reproduces the prior means that were used
    for user in range(data.n_users):
        mean = prior_mean(model.choice, data.items[of_user(data, user)])
        np.testing.assert_allclose(mean, twin.m[user], **close)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_the_first_rounds_are_those_of_the_first_users(rank: int) -> None:
    data = tiny([3, 1, 2, 4, 0, 3, 6, 1, 13, 0, 4, 9, 2, 7])
    few = data.beginning(14)
    assert few.n_users == 6
    assert set(few.items) < set(data.items), "an item that only later users have rated"
    whole = fit_factor_model(data, rank=rank, rounds=0, seed=5)
    twin = Twin(few, fit_factor_model(few, rank=rank, rounds=0, seed=5))
    # the unit is that of all ratings, and so are the priors to start with
    twin.S, twin.noise = whole.covariance, whole.noise
    twin.item_prior[0, 0] = 0.25 * data.ratings.var()
    twin.run(4)
    twin.go_on_with(data, whole.mean)
    twin.run(2)
    assert_twins(twin, fit_factor_model(data, rank=rank, rounds=6, seed=5, begin_with=14))


@pytest.mark.parametrize(("ratings", "users"), [(0, 1), (6, 1), (7, 2), (19, 2), (20, 4), (99, 12)])
def test_a_beginning_is_of_whole_users(ratings: int, users: int) -> None:
    few = MIXED.beginning(ratings)
    assert few.n_users == users
    assert len(few.items) == len(few.ratings) == few.ends[-1] == MIXED.ends[users]


def test_the_start_is_the_mean_and_shrunken_biases() -> None:
    start = fit_factor_model(MIXED, rank=2, rounds=0, seed=5)
    assert start.mean == pytest.approx(sum(MIXED.ratings) / len(MIXED.ratings))
    for item in range(TINY_ITEMS):
        deviations = MIXED.ratings[MIXED.items == item] - start.mean
        assert start.bias[item] == pytest.approx(deviations.sum() / (len(deviations) + 5))


# --- data from the model -------------------------------------------------------------------


@dataclass
class World:
    """Ratings drawn from the model, split in two, and the noise they were drawn with."""

    train: SampledRatings
    test: SampledRatings
    noise: float


def draw_world(
    seed: int, n_train: int, *, choosiness: float, rank: int = 2, n_items: int = 150
) -> World:
    """Draw 400 users and their ratings; who is choosy rates what he or she will like."""
    rng = np.random.default_rng(seed)
    n_users, noise = 400, 0.5
    factors = rng.normal(0, 1, (n_items, rank))
    bias = rng.normal(0, 0.5, n_items)
    train, test = [], []
    for _ in range(n_users):
        level, taste = rng.normal(0, 0.4), rng.normal(0, 0.7, rank)
        liking = factors @ taste
        keys = choosiness * liking + rng.gumbel(size=n_items)
        chosen = rng.permutation(np.argsort(-keys)[: n_train + 10])
        mean = 3.5 + bias[chosen] + level + liking[chosen]
        ratings = mean + rng.normal(0, np.sqrt(noise), len(chosen))
        train.append((chosen[:n_train], ratings[:n_train]))
        test.append((chosen[n_train:], ratings[n_train:]))
    return World(sampled(train, n_items), sampled(test, n_items), noise)


def held_out_error(world: World, model: FactorModel, S: Array, means: Array) -> float:
    """Return the mean squared error of every user's posterior mean on the held-out ratings."""
    errors = []
    for user in range(world.train.n_users):
        own, other = of_user(world.train, user), of_user(world.test, user)
        items, ratings = world.train.items[own], world.train.ratings[own]
        w = posterior_mean(model, S, means[user], items, ratings)
        items = world.test.items[other]
        predicted = model.mean + model.bias[items] + model.factors[items] @ w
        errors.append((world.test.ratings[other] - predicted) ** 2)
    return float(np.concatenate(errors).mean())


def prior_means(model: FactorModel, data: SampledRatings) -> Array:
    return np.array(
        [prior_mean(model.choice, data.items[of_user(data, u)]) for u in range(data.n_users)]
    )


@pytest.mark.parametrize("rank", [2, 3])
def test_noise_and_held_out_ratings_are_recovered(rank: int) -> None:
    world = draw_world(1, 40, choosiness=0.0, rank=rank)
    model = fit_factor_model(world.train, rank=rank, rounds=30, seed=0)
    # 16,000 ratings: the standard error of a variance is 0.011 of it; the rest is the estimation
    assert model.noise == pytest.approx(world.noise, rel=0.08)
    # the same model without factors: biases of items and levels of users
    plain = fit_factor_model(world.train, rank=0, rounds=30, seed=0)
    excess, plain_excess = (
        held_out_error(world, m, m.covariance, prior_means(m, world.train)) - world.noise
        for m in (model, plain)
    )
    assert excess < 0.2 * plain_excess


def gain_of_choices(choosiness: float, seed: int) -> float:
    """Return which part of the avoidable error prior means avoid.

    Compared is the best normal prior of the same weights that does not look at choices. Twenty
    ratings of every user are enough for these factors; from three there is nothing to learn.
    """
    world = draw_world(seed, 20, choosiness=choosiness)
    model = fit_factor_model(world.train, rank=2, rounds=30, seed=0)
    means = prior_means(model, world.train)
    same = np.broadcast_to(means.mean(axis=0), means.shape)
    marginal = model.covariance + np.cov(means.T, bias=True)
    informed = held_out_error(world, model, model.covariance, means) - world.noise
    return 1.0 - informed / (held_out_error(world, model, marginal, same) - world.noise)


@pytest.mark.parametrize("seed", [2, 3])
def test_choices_help_when_they_tell_of_taste(seed: int) -> None:
    assert gain_of_choices(1.5, seed) > 0.05


@pytest.mark.parametrize("seed", [2, 3])
def test_choices_do_no_harm_when_they_tell_nothing(seed: int) -> None:
    assert gain_of_choices(0.0, seed) > -0.01


def gain_of_raters(choosiness: float, seed: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return which part of the avoidable error is avoided by looking at who rated an item."""

    def held_out() -> float:
        # 17 ratings of an item
        world = draw_world(seed, 25, choosiness=choosiness, n_items=600)
        model = fit_factor_model(world.train, rank=2, rounds=30, seed=0)
        means = prior_means(model, world.train)
        return held_out_error(world, model, model.covariance, means) - world.noise

    def alike(estimate: Any) -> Array:
        return np.outer(estimate.rated, estimate.item_posteriors.mean(axis=0))

    informed = held_out()
    with monkeypatch.context() as patched:
        patched.setattr(factor_model._Estimate, "_expected_items", alike)
        uninformed = held_out()
    return 1.0 - informed / uninformed


def test_raters_help_when_choices_tell_of_taste(monkeypatch: pytest.MonkeyPatch) -> None:
    gains = [gain_of_raters(1.5, seed, monkeypatch) for seed in range(2, 8)]
    assert min(gains) > 0.0
    assert np.mean(gains) > 0.2


@pytest.mark.slow
def test_raters_do_little_harm_when_choices_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(gain_of_raters(0.0, seed, monkeypatch) for seed in range(2, 8)) > -0.08


# --- the prior's own metric ----------------------------------------------------------------


def test_whitened_factors_carry_the_prior() -> None:
    model = fit_factor_model(MIXED, rank=3, rounds=4, seed=2)
    phi, _ = model.whitened()
    expected = model.factors @ model.covariance @ model.factors.T / model.noise
    np.testing.assert_allclose(phi @ phi.T, expected, rtol=1e-9, atol=1e-12)


def test_ridge_one_on_whitened_factors_is_the_posterior_mean() -> None:
    model = fit_factor_model(MIXED, rank=3, rounds=4, seed=2)
    phi, choice = model.whitened()
    for user in range(MIXED.n_users):
        own = of_user(MIXED, user)
        items, ratings = MIXED.items[own], MIXED.ratings[own]
        w = posterior_mean(model, model.covariance, prior_mean(model.choice, items), items, ratings)
        v = prior_mean(choice, items)
        if len(items):
            target = ratings - model.mean - model.bias[items] - phi[items] @ v
            v = v + Ridge(alpha=1.0, fit_intercept=False).fit(phi[items], target).coef_
        np.testing.assert_allclose(phi @ v, model.factors @ w, rtol=1e-8, atol=1e-9)


# --- the same bits, and the edges ----------------------------------------------------------


@contextmanager
def threads(number: int) -> Iterator[None]:
    before = numba.get_num_threads()
    numba.set_num_threads(number)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def assert_same_bits(a: FactorModel, b: FactorModel) -> None:
    for left, right in zip(astuple(a), astuple(b), strict=True):
        np.testing.assert_array_equal(left, right)


def assert_finite(model: FactorModel) -> None:
    for part in (*astuple(model), *model.whitened()):
        assert np.isfinite(part).all()


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread is all there is")
def test_the_number_of_threads_changes_no_bit() -> None:
    data = draw_world(4, 20, choosiness=0.5).train
    with threads(1):
        alone = fit_factor_model(data, rank=3, rounds=4, seed=1)
    with threads(2):
        together = fit_factor_model(data, rank=3, rounds=4, seed=1)
    assert_same_bits(alone, together)


def test_a_seed_is_a_result_and_another_seed_another() -> None:
    first, again, other = (fit_factor_model(MIXED, rank=2, rounds=3, seed=s) for s in (1, 1, 2))
    assert_same_bits(first, again)
    assert not np.allclose(first.factors, other.factors)


def test_progress_is_told_every_round() -> None:
    told: list[tuple[int, float]] = []
    model = fit_factor_model(
        MIXED, rank=2, rounds=3, seed=1, progress=lambda *now: told.append(now)
    )
    assert told == list(zip([1, 2, 3], model.noise_path, strict=True))
    assert model.noise == model.noise_path[-1]


def test_unrated_items_have_no_bias_and_no_factors() -> None:
    model = fit_factor_model(MIXED, rank=2, rounds=5, seed=1)
    assert model.bias[UNRATED] == 0.0
    np.testing.assert_array_equal(model.factors[UNRATED], [1.0, 0.0, 0.0])
    rated = np.delete(np.arange(TINY_ITEMS), UNRATED)
    assert (model.bias[rated] != 0).all()
    assert (model.factors[rated] != 0).all()


def test_more_unrated_items_change_nothing_for_rated_ones() -> None:
    ratings, items = MIXED.ratings, np.where(MIXED.items < UNRATED, MIXED.items, MIXED.items - 1)
    data = SampledRatings(items.astype(np.int32), ratings, MIXED.ends, TINY_ITEMS - 1)
    longer = SampledRatings(data.items, ratings, data.ends, TINY_ITEMS + 20)
    model, wide = (fit_factor_model(d, rank=2, rounds=5, seed=1) for d in (data, longer))
    np.testing.assert_allclose(wide.factors[: TINY_ITEMS - 1], model.factors, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(wide.covariance, model.covariance, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(wide.choice[-2:], model.choice[-2:], rtol=1e-9, atol=1e-9)


def test_one_user_with_one_rating_is_enough() -> None:
    one = sampled([(np.array([2]), np.array([4.0]))], 5)
    model = fit_factor_model(one, rank=2, rounds=20, seed=1)
    assert_finite(model)
    assert model.mean == 4.0
    np.testing.assert_array_equal(model.bias, 0.0)


@pytest.mark.parametrize("value", [3.0, 0.0, -1e6])
def test_equal_ratings_are_predicted_as_they_are(value: float) -> None:
    data = SampledRatings(MIXED.items, np.full(len(MIXED.items), value), MIXED.ends, MIXED.n_items)
    model = fit_factor_model(data, rank=2, rounds=150, seed=1)
    assert_finite(model)
    assert model.mean == value
    np.testing.assert_array_equal(model.bias, 0.0)
    np.testing.assert_allclose(prior_means(model, data), 0.0, atol=1e-12)
    assert model.noise == 1e-6


@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_ratings_without_an_error_keep_a_least_noise(unit: float) -> None:
    rng = np.random.default_rng(6)
    factors, tastes = rng.normal(size=60), rng.normal(size=80)
    users = []
    for taste in tastes:
        items = rng.choice(60, 30, replace=False)
        users.append((items, unit * (3.0 + taste * factors[items])))
    data = sampled(users, 60)
    model = fit_factor_model(data, rank=1, rounds=100, seed=1)
    assert_finite(model)
    least = 1e-6 * data.ratings.var()
    assert (model.noise_path >= least * (1.0 - 1e-12)).all()
    assert model.noise < 1e-3 * data.ratings.var()


def test_more_factors_than_there_are_keep_a_proper_prior() -> None:
    model = fit_factor_model(draw_world(7, 20, choosiness=0.0).train, rank=6, rounds=60, seed=1)
    assert_finite(model)
    assert (np.linalg.eigvalsh(model.covariance) > 0).all()


def test_no_ratings_at_all_are_refused() -> None:
    nobody = SampledRatings(np.zeros(0, np.int32), np.zeros(0), np.zeros(3, np.int64), 4)
    with pytest.raises(InputDataError, match="no ratings to learn item factors from"):
        fit_factor_model(nobody, rank=2, rounds=3, seed=1)


@pytest.mark.parametrize("unit", [0.2, 1.0, 37.0])
def test_the_unit_of_the_ratings_is_only_a_unit(unit: float) -> None:
    rng = np.random.default_rng(8)
    items = np.concatenate([rng.choice(40, 12, replace=False) for _ in range(80)])
    taste = np.repeat(rng.normal(size=(80, 2)), 12, axis=0)
    factors = rng.normal(size=(40, 2))
    ratings = 3.0 + (taste * factors[items]).sum(axis=1) + rng.normal(0, 0.5, len(items))
    ends = np.arange(0, 81 * 12, 12)

    def fit(values: np.ndarray) -> FactorModel:
        data = SampledRatings(items.astype(np.int32), values, ends, 40)
        return fit_factor_model(data, rank=3, rounds=8, seed=1)

    plain, scaled = fit(ratings), fit(unit * ratings)
    assert plain.factors[:, 1:].std() > 0.01
    np.testing.assert_allclose(scaled.noise, unit**2 * plain.noise, rtol=1e-4)
    np.testing.assert_allclose(scaled.bias, unit * plain.bias, rtol=1e-3, atol=1e-4 * unit)
    features, prior = plain.whitened()
    features_scaled, prior_scaled = scaled.whitened()
    np.testing.assert_allclose(features_scaled, features, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(prior_scaled, unit * prior, rtol=1e-3, atol=1e-3 * unit)
