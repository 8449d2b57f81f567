"""Weights of examples: an example of weight 2 is two of them, one of weight 0 is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from spark_rank.learners import ConstantScorer, ItemOffsetScorer, MPRank
from spark_rank.learners.errors import InvalidDataError, InvalidParameterError
from spark_rank.learners.kernels import Kernel

Array = NDArray[np.float64]
KINDS: list[dict[str, Any]] = [
    {"solver": "primal"},
    {"solver": "dual"},
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": 0.3, "ridge": "fixed"},
    {"kernel": "linear+rbf", "gamma": 0.3, "rbf_weight": 0.5},
    {"kernel": "poly", "gamma": 0.2, "degree": 3, "growth": 0.1},
]
COUNTS = np.array([1, 0, 3, 2, 1, 1, 0, 2, 5, 1, 1, 2])


@pytest.fixture(scope="module")
def problem() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(len(COUNTS), 4)) + 2.0
    return X, rng.integers(1, 6, len(COUNTS)).astype(float), rng.normal(size=len(COUNTS))


def repeated(*arrays: Array) -> list[Array]:
    return [np.repeat(array, COUNTS, axis=0) for array in arrays]


@pytest.mark.parametrize("params", KINDS)
def test_a_weight_is_how_often_an_example_counts(
    params: dict[str, Any], problem: tuple[Array, Array, Array]
) -> None:
    X, y, offset = problem
    weighted = MPRank(2.0, **params).fit(X, y, offset=offset, sample_weight=COUNTS)
    rows, targets, known = repeated(X, y, offset)
    counted = MPRank(2.0, **params).fit(rows, targets, offset=known)

    new = np.random.default_rng(6).normal(size=(20, 4))
    np.testing.assert_allclose(
        weighted.decision_function(new), counted.decision_function(new), rtol=1e-9
    )
    assert weighted.objective_ == pytest.approx(counted.objective_, rel=1e-9)
    assert weighted.gamma_ == pytest.approx(counted.gamma_)
    np.testing.assert_allclose(weighted.predict(new), counted.predict(new), rtol=1e-9)


def test_a_precomputed_kernel_takes_weights_too(problem: tuple[Array, Array, Array]) -> None:
    X, y, _ = problem
    kernel = Kernel("rbf", gamma=0.3)
    new = np.random.default_rng(6).normal(size=(20, 4))
    given = MPRank(2.0, kernel="precomputed").fit(kernel(X, X), y, sample_weight=COUNTS)
    named = MPRank(2.0, kernel="rbf", gamma=0.3).fit(X, y, sample_weight=COUNTS)
    np.testing.assert_allclose(
        given.decision_function(kernel(new, X)), named.decision_function(new), rtol=1e-9
    )


@pytest.mark.parametrize("params", KINDS)
def test_equal_weights_are_none(
    params: dict[str, Any], problem: tuple[Array, Array, Array]
) -> None:
    """With a ridge per example what counts are the weights' ratios."""
    X, y, _ = problem
    plain = MPRank(2.0, **params).fit(X, y)
    factor = 1.0 if params.get("ridge") == "fixed" else 0.125
    equal = MPRank(2.0, **params).fit(X, y, sample_weight=np.full(len(y), factor))
    np.testing.assert_allclose(equal.decision_function(X), plain.decision_function(X), rtol=1e-9)


def test_the_minimum_is_that_of_the_weighted_pairs(problem: tuple[Array, Array, Array]) -> None:
    X, y, _ = problem
    weights = np.random.default_rng(7).uniform(0.1, 3.0, len(y))
    C = 3.0

    def cost(w: Array) -> float:
        gaps = (X @ w - y)[:, None] - (X @ w - y)[None, :]
        pairs = weights[:, None] * weights[None, :] * gaps**2
        return float(w @ w + C / weights.sum() ** 2 * pairs.sum())

    best = minimize(cost, np.zeros(4), tol=1e-12)
    for solver in ("primal", "dual"):
        found = MPRank(C, solver=solver).fit(X, y, sample_weight=weights)
        assert found.coef_ is not None
        np.testing.assert_allclose(found.coef_, best.x, atol=1e-5)
        assert found.objective_ == pytest.approx(best.fun, rel=1e-8)


def test_examples_of_weight_0_decide_nothing(problem: tuple[Array, Array, Array]) -> None:
    X, y, _ = problem
    weights = (np.arange(len(y)) < 9).astype(float)
    far, wild = X.copy(), y.copy()
    far[9:], wild[9:] = 1e6, 1e6
    for params in ({}, {"kernel": "rbf"}):
        without = MPRank(**params).fit(X[:9], y[:9])
        beside = MPRank(**params).fit(far, wild, sample_weight=weights)
        np.testing.assert_allclose(beside.predict(X), without.predict(X), rtol=1e-6)


def test_equal_ratings_among_those_that_count_are_a_constant() -> None:
    X = np.random.default_rng(0).normal(size=(5, 2))
    model = MPRank().fit(X, [3.0, 3.0, 3.0, 9.0, 3.0], sample_weight=[1, 2, 1, 0, 1])
    assert np.array_equal(model.predict(X), np.full(5, 3.0))


@pytest.mark.parametrize("learner", [ConstantScorer(), ItemOffsetScorer()])
def test_baselines_take_weighted_means(learner: Any, problem: tuple[Array, Array, Array]) -> None:
    X, y, offset = problem
    weighted = learner.fit(X, y, offset=offset, sample_weight=COUNTS).intercept_
    rows, targets, known = repeated(X, y, offset)
    assert weighted == pytest.approx(learner.fit(rows, targets, offset=known).intercept_)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([1.0, 1.0], "vector of 3"),
        ([1.0, -1.0, 1.0], "not be negative"),
        ([0.0, 0.0, 0.0], "0 everywhere"),
        ([1.0, float("nan"), 1.0], "sample_weight holds NaN"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weights: list[float], says: str) -> None:
    with pytest.raises(InvalidDataError, match=says):
        MPRank().fit(np.eye(3), [1.0, 2.0, 3.0], sample_weight=weights)


def test_what_knows_no_weights_says_so(problem: tuple[Array, Array, Array]) -> None:
    X, y, _ = problem
    with pytest.raises(InvalidParameterError, match="takes no sample_weight"):
        MPRank(solver="online").fit(X, y, sample_weight=COUNTS)
    weighted = MPRank().fit(X, y, sample_weight=COUNTS)
    with pytest.raises(InvalidDataError, match="fit without sample_weight"):
        weighted.leave_pair_out(X, y)
    assert weighted.fit(X, y).leave_pair_out(X, y) > 0.0
