"""Weights, labelled pairs and queries: against brute force over all pairs, and repeated rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from spark_rank.learners import MPRank, RankBoost, RankSVM, SVRank
from spark_rank.learners.errors import InvalidDataError
from spark_rank.learners.pairs.weighted import (
    WeightedHingeLoss,
    WeightedInsensitiveLoss,
)

Array = NDArray[np.float64]
COUNTS = np.array([1, 0, 3, 2, 1, 1, 0, 2, 4, 1, 1, 2, 1, 1])


def problem(m: int = 14, d: int = 3, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) + 1.0
    return X, np.clip(np.round(3.0 + X[:, 0] - X[:, 1] + rng.normal(size=m)), 1, 5)


def queries(m: int) -> NDArray[np.int64]:
    return np.random.default_rng(5).integers(10, 13, m)


PAIRS: list[Any] = [
    SVRank(30.0, tol=1e-8),
    SVRank(30.0, power=2, tol=1e-8),
    SVRank(30.0, kernel="rbf", gamma=0.4, tol=1e-8),
    SVRank(30.0, kernel="rbf", tol=1e-8),
    RankSVM(0.1, tol=1e-8),
    RankSVM(0.1, kernel="rbf", tol=1e-8),
    RankSVM(3.0, loss="mean", tol=1e-8),
]


@pytest.mark.parametrize("learner", PAIRS, ids=repr)
def test_a_weight_is_how_often_an_example_counts(learner: Any) -> None:
    X, y = problem()
    offset = np.linspace(-0.5, 0.5, len(y))
    new = problem(seed=9)[0]
    weighted = learner.fit(X, y, offset=offset, sample_weight=COUNTS)
    scores, value = weighted.decision_function(new), weighted.objective_
    rows = np.repeat(np.arange(len(y)), COUNTS)
    counted = learner.fit(X[rows], y[rows], offset=offset[rows])
    assert value == pytest.approx(counted.objective_, rel=1e-6)
    np.testing.assert_allclose(scores, counted.decision_function(new), atol=2e-3)
    if learner.on_rating_scale:
        np.testing.assert_allclose(weighted.predict(new), counted.predict(new), atol=2e-3)


def pair_cost(learner: Any, h: Array, y: Array, s: Array, same: Any) -> float:
    """Return the cost over pairs of one query, as the classes say it, by brute force."""
    gaps, weights = (h - y)[:, None] - (h - y)[None, :], s[:, None] * s[None, :] * same
    if isinstance(learner, RankSVM):
        short = np.maximum(0.0, 1.0 - (h[:, None] - h[None, :])) * (y[:, None] > y[None, :])
        return learner.C * float((weights * short).sum())
    costs = np.maximum(0.0, np.abs(gaps) - getattr(learner, "epsilon", 0.0))
    costs = costs ** getattr(learner, "power", 2)
    sizes = same @ s
    return learner.C / s.sum() * float((weights * costs / sizes[:, None]).sum())


@pytest.mark.parametrize(
    "learner",
    [MPRank(30.0), MPRank(30.0, solver="dual"), SVRank(30.0, tol=1e-9),
     SVRank(30.0, power=2, tol=1e-9), RankSVM(0.2, tol=1e-9)],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_one_model_over_all_queries_has_the_least_cost(learner: Any, weighted: bool) -> None:
    X, y = problem(20)
    qid = queries(20)
    s = np.random.default_rng(3).uniform(0.2, 2.0, 20) if weighted else np.ones(20)
    half = 0.5 if isinstance(learner, RankSVM) else 1.0

    def cost(w: Array) -> float:
        same = qid[:, None] == qid[None, :]
        return float(half * w @ w + pair_cost(learner, X @ w, y, s, same))

    given = {"sample_weight": s} if weighted else {}
    found = learner.fit(X, y, qid=qid, **given)
    assert found.objective_ == pytest.approx(cost(found.coef_), rel=1e-6)
    best = min(
        minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12,
                                                             "maxiter": 4000}).fun
        for start in (np.zeros(3), found.coef_)
    )  # fmt: skip
    assert found.objective_ <= best * (1.0 + 1e-6)
    if learner.on_rating_scale:
        assert np.average(found.decision_function(X), weights=s) == pytest.approx(
            np.average(y, weights=s)
        )


@pytest.mark.parametrize("kernel", ["rbf", "linear+rbf", "precomputed"])
def test_mprank_with_a_kernel_centres_within_queries(kernel: str) -> None:
    """One column per query that costs nothing to use is a free constant per query."""
    X, y = problem(18)
    qid = queries(18)
    gram = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    if kernel == "linear+rbf":
        gram = gram + X @ X.T
    C = 4.0
    ridge = 18 / (2.0 * C)
    constants = (qid[:, None] == np.unique(qid)).astype(float)
    block = np.block([[gram + ridge * np.eye(18), constants],
                      [constants.T, np.zeros((constants.shape[1],) * 2)]])  # fmt: skip
    alpha = np.linalg.solve(block, np.append(y, np.zeros(constants.shape[1])))[:18]
    given = gram if kernel == "precomputed" else X
    gamma = None if kernel == "precomputed" else 0.3
    model = MPRank(C, kernel=kernel, gamma=gamma).fit(given, y, qid=qid)
    np.testing.assert_allclose(model.dual_coef_, alpha, atol=1e-9)
    h = model.decision_function(given)
    np.testing.assert_allclose(h - h.mean(), gram @ alpha - (gram @ alpha).mean(), atol=1e-9)
    assert h.mean() == pytest.approx(y.mean())


@pytest.mark.parametrize(
    "learner", [MPRank(), MPRank(kernel="rbf"), SVRank(tol=1e-9), RankSVM(0.1, tol=1e-9),
                RankBoost(20)], ids=repr,
)  # fmt: skip
def test_one_query_is_no_query(learner: Any) -> None:
    X, y = problem(20)
    plain = learner.fit(X, y).decision_function(X)
    asked = learner.fit(X, y, qid=np.full(20, 7)).decision_function(X)
    np.testing.assert_allclose(asked - asked.mean(), plain - plain.mean(), atol=1e-4)


@pytest.mark.parametrize("learner", [MPRank(), SVRank(), RankSVM(), RankBoost(5)], ids=repr)
def test_what_differs_between_queries_alone_teaches_nothing(learner: Any) -> None:
    qid = np.repeat([1, 2, 3], 5)
    X = np.random.default_rng(0).normal(size=(15, 2))
    scores = learner.fit(X, qid.astype(float), qid=qid).decision_function(X)
    np.testing.assert_allclose(scores, scores[0], atol=1e-12)
    with pytest.raises(InvalidDataError, match="vector of 15 ids"):
        learner.fit(X, qid.astype(float), qid=[1, 2])


def all_pairs(y: Array) -> tuple[Any, Any, Any]:
    """Return all pairs once, in a random order and direction."""
    rng = np.random.default_rng(2)
    left, right = np.nonzero(np.triu(np.ones((len(y), len(y))), 1))
    turn = rng.random(len(left)) < 0.5
    left, right = np.where(turn, right, left), np.where(turn, left, right)
    order = rng.permutation(len(left))
    return left[order], right[order], np.sign(y[right] - y[left]).astype(int)[order]


@pytest.mark.parametrize(
    "learner",
    [RankSVM(0.1, tol=1e-9), RankSVM(5.0, loss="mean", tol=1e-9), RankBoost(30),
     RankSVM(0.1, kernel="rbf", tol=1e-9)],
    ids=repr,
)  # fmt: skip
def test_all_pairs_of_ratings_are_the_ratings(learner: Any) -> None:
    X, y = problem(25)
    scores = learner.fit(X, y).decision_function(X)
    listed = learner.fit_pairs(X, *all_pairs(y)).decision_function(X)
    np.testing.assert_allclose(listed - listed.mean(), scores - scores.mean(), atol=2e-3)


def test_pairs_that_contradict_each_other_are_an_svm_on_differences() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(12, 3))
    left, right = rng.integers(0, 12, 60), rng.integers(0, 12, 60)
    sign, weight = rng.choice([-1, 0, 1], 60), rng.uniform(0.1, 3.0, 60)
    model = RankSVM(0.5, tol=1e-9).fit_pairs(X, left, right, sign, weight)
    used = sign != 0
    peer = LinearSVC(C=0.5, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=500_000)
    peer.fit((X[right] - X[left])[used], sign[used], sample_weight=weight[used])
    np.testing.assert_allclose(model.coef_, peer.coef_[0], atol=1e-4)
    w = model.coef_
    short = np.maximum(0.0, 1.0 - sign * ((X[right] - X[left]) @ w)) * (sign != 0)
    assert model.objective_ == pytest.approx(0.5 * w @ w + 0.5 * weight @ short, rel=1e-8)


def test_boosting_listed_pairs_is_boosting_the_pairs() -> None:
    """The rounds of the lecture's listing, with every pair in memory."""
    rng = np.random.default_rng(6)
    X = rng.integers(0, 4, (15, 3)).astype(float)
    left, right = rng.integers(0, 15, 80), rng.integers(0, 15, 80)
    sign, weight = rng.choice([-1, 1], 80), rng.uniform(0.5, 2.0, 80)
    model = RankBoost(6, smoothing=0.01).fit_pairs(X, left, right, sign, weight)
    D = weight / weight.sum()
    for t in range(len(model.alphas_)):
        best = -np.inf
        for feature in range(3):
            for cut in np.unique(X[:, feature]):
                for below in (False, True):
                    h = (X[:, feature] < cut) if below else (X[:, feature] >= cut)
                    edge = D @ (sign * (h[right].astype(int) - h[left]))
                    best = max(best, edge)
        values = X[:, model.features_[t]]
        h = (values < model.cuts_[t]) if model.complements_[t] else (values >= model.cuts_[t])
        gaps = sign * (h[right].astype(int) - h[left])
        assert D @ gaps == pytest.approx(best)
        plus, minus = D[gaps > 0].sum(), D[gaps < 0].sum()
        assert model.alphas_[t] == pytest.approx(0.5 * np.log((plus + 0.01) / (minus + 0.01)))
        D = D * np.exp(-model.alphas_[t] * gaps)
        assert D.sum() == pytest.approx(model.normalizers_[t])
        D = D / D.sum()
    scores = model.decision_function(X)
    wrong = weight[sign * (scores[right] - scores[left]) <= 0.0].sum() / weight.sum()
    assert model.train_misranking_[-1] == pytest.approx(wrong)


@pytest.mark.parametrize("learner", [RankSVM(), RankBoost()], ids=repr)
def test_pairs_that_say_nothing_teach_nothing(learner: Any) -> None:
    X = problem()[0]
    for pairs in (([], [], []), ([0, 1], [1, 2], [0, 0]), ([0], [1], [1], [0.0])):
        assert not learner.fit_pairs(X, *pairs).decision_function(X).any()


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (([0], [99], [1]), "right must hold rows of X, from 0 to 13"),
        (([0.5], [1], [1]), "left must be a vector of row numbers"),
        (([0], [1, 2], [1]), "vectors of one length"),
        (([0], [1], [2]), "sign must be 1"),
        (([0], [1], [1], [-1.0]), "weight must not be negative"),
    ],
)
def test_pairs_that_are_none_are_refused(pairs: Any, words: str) -> None:
    for learner in (RankSVM(), RankBoost()):
        with pytest.raises(InvalidDataError, match=words):
            learner.fit_pairs(problem()[0], *pairs)


def test_c_per_pair_transfers_between_sizes() -> None:
    """Every example three times are nine times the pairs: with the mean, the same model."""
    X, y = problem(20)
    rows = np.tile(np.arange(20), 3)
    mean = RankSVM(2.0, loss="mean", tol=1e-8)
    once = mean.fit(X, y).coef_
    np.testing.assert_allclose(mean.fit(X[rows], y[rows]).coef_, once, atol=1e-4)
    pairs = sum(a > b for a in y for b in y)
    total = RankSVM(2.0 / pairs, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(total.coef_, once, atol=1e-4)


@pytest.mark.parametrize("power", [1, 2])
def test_weighted_losses_are_sums_over_pairs(power: int) -> None:
    rng = np.random.default_rng(8)
    y, s = rng.integers(1, 4, 30).astype(float), rng.uniform(0.0, 2.0, 30)
    insensitive = WeightedInsensitiveLoss(y, s, epsilon=0.4, power=power, weight=0.3)
    hinge = WeightedHingeLoss(y, s, weight=0.3, offset=rng.normal(size=30))
    for _ in range(5):
        h = np.round(rng.normal(size=30), 1)  # with ties
        gaps = np.abs((h - y)[:, None] - (h - y)[None, :])
        pairs = s[:, None] * s[None, :]
        value, pulls = insensitive(h)
        assert value == pytest.approx(0.3 * (pairs * np.maximum(0.0, gaps - 0.4) ** power).sum())
        assert pulls.sum() == pytest.approx(0.0, abs=1e-9)
        other = rng.normal(size=30)
        assert insensitive(other)[0] >= value + pulls @ (other - h) - 1e-9  # a subgradient
        value, pulls = hinge(h)
        shifted = h + hinge.offset
        short = np.maximum(0.0, 1.0 - (shifted[:, None] - shifted[None, :]))
        assert value == pytest.approx(0.3 * (pairs * short * (y[:, None] > y[None, :])).sum())
        assert hinge(other)[0] >= value + pulls @ (other - h) - 1e-9
