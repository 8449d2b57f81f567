"""ROMMA and passive-aggressive steps: against a quadratic programme, and against plain NumPy."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from spark_rank.learners import OAP, PRank
from spark_rank.learners.errors import InvalidDataError, InvalidParameterError
from spark_rank.learners.perceptrons.draws import (
    cumulative_counts,
    member_keys,
    presentations,
)
from spark_rank.rank_rule import ranks_from_scores

Array = NDArray[np.float64]
MARGINS = ("romma", "aggressive-romma", "pa")
K = 4


def sequence(seed: int, m: int = 60, d: int = 3, noise: float = 0.3) -> tuple[Array, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    scores = X @ np.linspace(1.0, 2.0, d) + noise * rng.normal(size=m)
    return X, 1 + (scores[:, None] >= np.array([-1.5, 0.0, 1.0])).sum(axis=1)


def margin_sum(v: Array, x: Array, rank: int, d: int, limit: float, *, below: bool) -> Any:
    """Return z and |E|: the thresholds whose margins are up to, or below, the limit."""
    sides = np.where(rank <= np.arange(1, K), -1.0, 1.0)
    margins = sides * (v[:d] @ x - v[d:])
    small = margins < limit if below else margins <= limit
    return np.concatenate([(sides * small).sum() * x, -sides * small]), small.sum()


def shortest(v: Array, z: Array, wanted: float) -> Array:
    """Solve ROMMA's quadratic programme."""
    constraints = [{"type": "ineq", "fun": lambda u: u @ z - wanted, "jac": lambda u: z}]
    if v.any():
        constraints.append({"type": "ineq", "fun": lambda u: u @ v - v @ v, "jac": lambda u: v})
    start = v + z * (wanted - v @ z) / (z @ z)
    found = minimize(
        lambda u: 0.5 * u @ u, start, jac=lambda u: u, constraints=constraints, method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    return np.asarray(found.x)


def twin(X: Array, ranks: Any, update: str, C: float = 1.0) -> tuple[list[Array], list[int]]:
    """Return the rule after every round, and the rank losses, by the definitions."""
    d = X.shape[1]
    v, rules, losses = np.zeros(d + K - 1), [], []
    for x, rank in zip(X, ranks, strict=True):
        predicted = 1 + int((v[:d] @ x >= v[d:]).sum())
        losses.append(abs(predicted - rank))
        if update == "romma":
            z, size = margin_sum(v, x, rank, d, 0.0, below=False)
            moves = predicted != rank
        else:
            z, size = margin_sum(v, x, rank, d, 1.0, below=True)
            moves = size > 0
        if moves and update == "pa":
            v = v + min(C, max(0.0, size - v @ z) / (z @ z)) * z
        elif moves:
            v = shortest(v, z, float(size))
        v = np.concatenate([v[:d], np.sort(v[d:])])
        rules.append(v)
    return rules, losses


@pytest.mark.parametrize("update", MARGINS)
def test_every_step_is_the_solution_of_its_problem(update: str) -> None:
    X, ranks = sequence(1, noise=0.1)
    rules, losses = twin(X, ranks, update, C=0.4)
    learner = PRank(K, update=update, C=0.4)
    for t in range(len(X)):
        learner.partial_fit(X[t : t + 1], ranks[t : t + 1])
        found = np.concatenate([learner.coef_, learner.thresholds_]) / learner.unit_
        scale = np.abs(rules[t]).max() or 1.0
        np.testing.assert_allclose(found / scale, rules[t] / scale, atol=2e-5)
        learner.coef_[:] = rules[t][:3] * learner.unit_  # the programme's error must not add up
        learner.thresholds_[:] = rules[t][3:] * learner.unit_
    assert learner.total_loss_ == sum(losses)
    assert np.allclose(learner.online_loss_, np.cumsum(losses) / np.arange(1, len(X) + 1))


def test_aggressive_steps_may_drop_the_old_rule() -> None:
    """Where v·z is so great that the new constraint alone is the stricter one."""
    rng = np.random.default_rng(3)
    dropped = 0
    for _ in range(200):
        v = 0.3 * rng.normal(size=4)
        v[3:] = np.sort(v[3:])
        x = 1.5 * rng.normal(size=3)
        learner = PRank(2, update="aggressive-romma").fit(np.zeros((1, 3)), [2])
        learner.coef_, learner.thresholds_ = v[:3].copy(), v[3:].copy()
        side = 1.0
        z = np.append(side * x, -side)
        if not v @ z < 1.0:
            continue
        expected = shortest(v, z, 1.0)
        learner.partial_fit(x[None, :], [2])
        found = np.concatenate([learner.coef_, learner.thresholds_])
        np.testing.assert_allclose(found, expected, atol=1e-5)
        dropped += z @ z * (v @ v) <= v @ z
    assert dropped > 3


@pytest.mark.parametrize("update", MARGINS)
def test_thresholds_stay_ordered(update: str) -> None:
    X, ranks = sequence(2, 300, noise=3.0)
    learner = PRank(K, update=update)
    for start in range(0, 300, 10):
        learner.partial_fit(X[start : start + 10], ranks[start : start + 10])
        assert (np.diff(learner.thresholds_) >= 0.0).all()


def test_romma_survives_any_length_of_noise() -> None:
    """Its length grows by a factor with every mistake: 2^1000 is soon reached."""
    rng = np.random.default_rng(0)
    X, ranks = rng.normal(size=(30_000, 2)), rng.integers(1, 5, 30_000)
    learner = PRank(4, update="romma").fit(X, ranks)
    assert learner.unit_ < 1e-100
    assert np.isfinite(learner.coef_).all()
    assert 0.9 < learner.online_loss_[-1] < 1.7  # no better than chance is possible


def test_romma_finds_what_separates() -> None:
    X, _ = sequence(4, 400, noise=0.0)
    scores = X @ [1.0, -2.0, 0.5]
    cuts = np.array([-1.0, 0.2, 1.4])
    keep = np.abs(scores[:, None] - cuts).min(axis=1) > 0.2
    X, ranks = X[keep], ranks_from_scores(scores[keep], cuts)
    for update in MARGINS:
        learner = PRank(K, update=update, epochs=60).fit(X, ranks)
        assert np.array_equal(learner.predict(X), ranks), update


@pytest.mark.parametrize("readout", ["last", "averaged"])
@pytest.mark.parametrize("update", MARGINS)
def test_cutting_the_sequence_changes_no_bit(update: str, readout: str) -> None:
    X, ranks = sequence(5, 200, noise=0.8)
    whole = PRank(K, update=update, readout=readout, C=0.2).fit(X, ranks)
    parts = PRank(K, update=update, readout=readout, C=0.2)
    for part in (slice(0, 1), slice(1, 77), slice(77, 200)):
        parts.partial_fit(X[part], ranks[part])
    stored = json.loads(
        json.dumps(parts.to_params(), default=lambda value: np.asarray(value).tolist())
    )
    for other in (parts, PRank.from_params(stored)):
        assert np.array_equal(other.decision_function(X), whole.decision_function(X))
        assert np.array_equal(other.predict(X), whole.predict(X))
    again = PRank.from_params(whole.to_params()).partial_fit(X[:50], ranks[:50])
    assert np.array_equal(again.coef_, whole.partial_fit(X[:50], ranks[:50]).coef_)


@pytest.mark.parametrize("update", MARGINS)
def test_the_average_is_the_mean_of_rules_of_length_1(update: str) -> None:
    X, ranks = sequence(6, 120, noise=0.8)
    last = PRank(K, update=update)
    rules = []
    for t in range(len(X)):
        last.partial_fit(X[t : t + 1], ranks[t : t + 1])
        rule = np.concatenate([last.coef_, last.thresholds_])
        rules.append(rule / (np.linalg.norm(rule) or 1.0))
    averaged = PRank(K, update=update, readout="averaged").fit(X, ranks)
    mean = np.mean(rules, axis=0)
    np.testing.assert_allclose(np.concatenate([averaged.coef_, averaged.thresholds_]), mean)


def members(X: Array, ranks: Any, ensemble: OAP) -> list[list[PRank]]:
    """Return every member as a PRank that is shown its draws, after each round."""
    keys = member_keys(ensemble.seed, ensemble.problem, np.arange(ensemble.n_members))
    counts = presentations(
        keys, np.arange(len(X)), cumulative_counts(ensemble.sampling, ensemble.tau)
    )
    found = []
    for own in counts:
        learner = PRank(K, update=ensemble.update, C=ensemble.C)
        states = []
        learner.fit(np.zeros((1, X.shape[1])), [K])  # the rule 0 is right about it
        for t, times in enumerate(own):
            states.append((learner.coef_.copy(), learner.thresholds_.copy()))
            for _ in range(times):
                learner.partial_fit(X[t : t + 1], ranks[t : t + 1])
        states.append((learner.coef_.copy(), learner.thresholds_.copy()))
        found.append(states)
    return found


@pytest.mark.parametrize("sampling", ["bernoulli", "poisson"])
def test_an_ensemble_is_its_members(sampling: str) -> None:
    X, ranks = sequence(7, 80, noise=0.8)
    for combine in ("bpm", "bagging"):
        ensemble = OAP(
            K, n_members=5, tau=0.5, combine=combine, sampling=sampling, update="romma", seed=3
        ).fit(X, ranks)
        states = members(X, ranks, ensemble)
        online = []
        for t in range(len(X) + 1):
            rules = [np.concatenate(state[t]) for state in states]
            rules = [rule / (np.linalg.norm(rule) or 1.0) for rule in rules]
            if t == len(X):
                mean = np.mean(rules, axis=0)
                np.testing.assert_allclose(ensemble.coef_, mean[:3], atol=1e-14)
                np.testing.assert_allclose(ensemble.thresholds_, mean[3:], atol=1e-14)
                break
            if combine == "bpm":
                mean = np.mean(rules, axis=0)
                online.append(int(ranks_from_scores(mean[:3] @ X[t], mean[3:])))
            else:
                each = [int(ranks_from_scores(rule[:3] @ X[t], rule[3:])) for rule in rules]
                online.append(int(np.floor(np.mean(each) + 0.5)))
        losses = np.abs(np.array(online) - ranks)
        # a threshold that equals a score is on the side that rounding decides
        assert abs(int(losses.sum()) - ensemble.total_loss_) <= 1


@pytest.mark.parametrize("combine", ["bpm", "bagging", "voted"])
@pytest.mark.parametrize("update", MARGINS)
def test_groups_of_members_give_the_same_bits(update: str, combine: str) -> None:
    X, ranks = sequence(8, 150, noise=0.8)
    ensemble = OAP(K, n_members=7, tau=0.5, update=update, combine=combine, C=0.3)
    whole = OAP(K, n_members=7, tau=0.5, update=update, combine=combine, C=0.3).fit(X, ranks)
    groups = [
        ensemble.train_members(X, ranks, first=first, last=last)
        for first, last in ((3, 7), (0, 1), (1, 3))
    ]
    ensemble.combine_groups(groups, X, ranks)
    for name in ("coef_", "thresholds_", "online_loss_", "member_coef_", "member_correct_"):
        assert np.array_equal(getattr(ensemble, name), getattr(whole, name)), name
    parts = OAP(K, n_members=7, tau=0.5, update=update, combine=combine, C=0.3)
    parts.partial_fit(X[:40], ranks[:40]).partial_fit(X[40:], ranks[40:])
    assert np.array_equal(parts.predict(X), whole.predict(X))
    assert np.array_equal(parts.online_loss_, whole.online_loss_)
    loaded = OAP.from_params(whole.to_params())
    assert np.array_equal(loaded.predict(X), whole.predict(X))
    with pytest.raises(InvalidDataError, match="another ensemble"):
        OAP(K, n_members=7, tau=0.5).combine_groups(groups, X, ranks)


def test_the_perceptron_is_what_it_was() -> None:
    X, ranks = sequence(9)
    plain, named = PRank(K).fit(X, ranks), PRank(K, update="perceptron", C=9.0).fit(X, ranks)
    assert np.array_equal(plain.coef_, named.coef_)
    assert np.array_equal(plain.thresholds_, np.rint(plain.thresholds_))


def test_margins_are_for_the_linear_kernel() -> None:
    with pytest.raises(InvalidParameterError, match="polynomial_features"):
        PRank(3, kernel="poly", update="romma").fit([[1.0]], [1])
    with pytest.raises(InvalidParameterError, match="one of perceptron, romma"):
        PRank(3, update="newton").fit([[1.0]], [1])
    with pytest.raises(InvalidParameterError, match="no voted read-out"):
        PRank(3, update="pa", readout="voted").fit([[1.0]], [1])
