"""Widrow–Hoff against its one-line rule, scikit-learn's stochastic gradient, and rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ordinal_twins import Floats, Ints, half_integer_problem, lane_dot, running_average
from sklearn.linear_model import SGDRegressor  # type: ignore[import-untyped]

from spark_rank.learners.errors import (
    InvalidDataError,
    InvalidParameterError,
    NotFittedError,
    NumericFailureError,
)
from spark_rank.learners.widrow_hoff import WidrowHoff

seeds = st.integers(0, 10_000)


def problem(seed: int, n_examples: int = 80, n_features: int = 11) -> tuple[Floats, Ints]:
    X, y = half_integer_problem(seed, n_examples, n_features)
    rng = np.random.default_rng(seed)
    return (X + 0.1 * rng.normal(size=X.shape)) / 5, y


def nearest(score: float, n_ranks: int) -> int:
    return int(min(max(np.floor(score + 0.5), 1), n_ranks))


@given(seed=seeds, eta=st.sampled_from([0.01, 0.1, 0.3]), n_ranks=st.integers(2, 7))
@settings(max_examples=30, deadline=None)
def test_equals_its_rule_to_the_bit(seed: int, eta: float, n_ranks: int) -> None:
    X, y = problem(seed)
    y = np.minimum(y, n_ranks)
    coef, losses = np.zeros(X.shape[1]), []
    for x, rank in zip(X, y, strict=True):
        score = lane_dot(coef, x)
        losses.append(abs(nearest(score, n_ranks) - int(rank)))
        coef = coef + eta * (int(rank) - score) * x
    learner = WidrowHoff(n_ranks, eta=eta).fit(X, y)
    np.testing.assert_array_equal(learner.coef_, coef)
    np.testing.assert_array_equal(learner.online_loss_, running_average(losses))
    assert learner.decision_function(X).tolist() == [lane_dot(coef, x) for x in X]


@pytest.mark.parametrize("epochs", [1, 4])
def test_equals_stochastic_gradient_descent(epochs: int) -> None:
    X, y = problem(1)
    oracle = SGDRegressor(
        alpha=0.0, fit_intercept=False, learning_rate="constant", eta0=0.05, shuffle=False
    )
    for _ in range(epochs):
        oracle.partial_fit(X, y)
    learner = WidrowHoff(5, eta=0.05, epochs=epochs).fit(X, y)
    np.testing.assert_allclose(learner.coef_, oracle.coef_, rtol=1e-9)
    np.testing.assert_allclose(learner.decision_function(X), oracle.predict(X), rtol=1e-9)


def test_many_small_steps_reach_least_squares() -> None:
    X, y = problem(2)
    learner = WidrowHoff(5, eta=1e-3, epochs=3000).fit(X, y)
    best = np.linalg.lstsq(X, y.astype(float), rcond=None)[0]
    start, reached = np.linalg.norm(best), np.linalg.norm(learner.coef_ - best)
    # a constant step circles the optimum within O(η)
    assert reached < 0.02 * start


@given(
    score=st.one_of(st.floats(-10, 20), st.integers(-20, 40).map(lambda half: half / 2)),
    n_ranks=st.integers(2, 8),
)
def test_prediction_is_the_nearest_rank_half_up_and_clipped(score: float, n_ranks: int) -> None:
    learner = WidrowHoff(n_ranks)
    learner.partial_fit([[0.0]], [1])
    learner.coef_ = np.array([1.0])
    assert learner.predict([[score]]).tolist() == [nearest(score, n_ranks)]


def test_first_prediction_is_the_lowest_rank() -> None:
    assert WidrowHoff(5).fit([[0.3]], [4]).online_loss_[0] == 3


@given(seed=seeds, cut=st.integers(1, 79))
@settings(max_examples=60, deadline=None)
def test_parts_learn_what_the_whole_learns(seed: int, cut: int) -> None:
    X, y = problem(seed)
    whole = WidrowHoff(5).fit(X, y)
    parts = WidrowHoff(5).partial_fit(X[:cut], y[:cut])
    resumed = WidrowHoff.from_params(parts.to_params()).partial_fit(X[cut:], y[cut:])
    parts.partial_fit(X[cut:], y[cut:])
    np.testing.assert_equal(parts.to_params(), whole.to_params())
    np.testing.assert_equal(resumed.to_params(), whole.to_params())
    np.testing.assert_array_equal(parts.online_loss_, whole.online_loss_)


def test_exported_learner_scores_with_the_same_bits() -> None:
    X, y = problem(3)
    learner = WidrowHoff(5, eta=0.2).fit(X, y)
    copy = WidrowHoff.from_params(learner.to_params())
    np.testing.assert_array_equal(copy.decision_function(X), learner.decision_function(X))
    np.testing.assert_array_equal(copy.predict(X), learner.predict(X))


def test_one_example_and_equal_ranks_are_learned() -> None:
    assert WidrowHoff(5, eta=0.5).fit([[2.0]], [3]).coef_.tolist() == [3.0]
    learner = WidrowHoff(5, eta=0.5, epochs=60).fit(np.ones((4, 1)), [2, 2, 2, 2])
    assert learner.predict([[1.0]]).tolist() == [2]


def test_too_large_a_step_is_named_and_leaves_the_learner_as_it_was() -> None:
    X, y = problem(4)
    learner = WidrowHoff(5, eta=0.1).fit(X, y)
    exported = learner.to_params()
    with pytest.raises(NumericFailureError, match="lower eta"):
        learner.partial_fit(np.tile(X * 100, (20, 1)), np.tile(y, 20))
    np.testing.assert_equal(learner.to_params(), exported)
    with pytest.raises(NumericFailureError, match="coefficients overflowed"):
        WidrowHoff(5, eta=1e10).fit([[1e300]], [5])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [np.nan]], [1, 2], "row 1 of X"),
        ([[np.inf]], [1], "row 0 of X"),
        ([[1.0]], [6], "from 1 to 5"),
        (np.empty((0, 2)), [], "at least one"),
    ],
)
def test_bad_data_is_named(X: Any, y: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        WidrowHoff(5).fit(X, y)


@pytest.mark.parametrize("options", [{"eta": 0.0}, {"eta": -1.0}, {"eta": "x"}, {"epochs": 0}])
def test_bad_parameters_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError):
        WidrowHoff(5, **options).fit([[1.0]], [1])


def test_scoring_needs_learning_and_the_same_features() -> None:
    with pytest.raises(NotFittedError):
        WidrowHoff(5).predict([[1.0]])
    with pytest.raises(InvalidDataError, match="fitted on 2"):
        WidrowHoff(5).fit([[1.0, 2.0]], [1]).predict([[1.0]])
