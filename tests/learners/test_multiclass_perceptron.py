"""The multiclass perceptron against its pseudo-code and the properties of its updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ordinal_twins import (
    Floats,
    Ints,
    half_integer_problem,
    lane_dot,
    real_problem,
    running_average,
)

from spark_rank.learners.errors import (
    InvalidDataError,
    InvalidParameterError,
    NotFittedError,
    NumericFailureError,
)
from spark_rank.learners.multiclass_perceptron import MulticlassPerceptron

seeds = st.integers(0, 10_000)


def naive(X: Floats, y: Ints, n_ranks: int) -> tuple[Floats, list[int]]:
    """Predict argmax_r M_r·x; if wrong, M_y += x and M_r −= x/|E| for the r that did no worse."""
    prototypes = np.zeros((n_ranks, X.shape[1]))
    losses = []
    for x, rank in zip(X, y, strict=True):
        scores = [lane_dot(prototype, x) for prototype in prototypes]
        predicted = scores.index(max(scores)) + 1
        losses.append(abs(predicted - int(rank)))
        if predicted != rank:
            truth = int(rank) - 1
            errors = [r for r in range(n_ranks) if r != truth and scores[r] >= scores[truth]]
            for r in errors:
                prototypes[r] -= x / len(errors)
            prototypes[truth] += x
    return prototypes, losses


@pytest.mark.parametrize("problem", [half_integer_problem, real_problem])
@given(seed=seeds, n_ranks=st.integers(2, 7), n_features=st.integers(1, 20))
@settings(max_examples=30, deadline=None)
def test_equals_the_pseudo_code_to_the_bit(
    problem: Any, seed: int, n_ranks: int, n_features: int
) -> None:
    X, y = problem(seed, 60, n_features, n_ranks)
    prototypes, losses = naive(X, y, n_ranks)
    learner = MulticlassPerceptron(n_ranks).fit(X, y)
    np.testing.assert_array_equal(learner.coef_, prototypes)
    np.testing.assert_array_equal(learner.online_loss_, running_average(losses))
    scores = [[lane_dot(prototype, x) for prototype in prototypes] for x in X]
    np.testing.assert_array_equal(learner.prototype_scores(X), scores)
    assert learner.predict(X).tolist() == [row.index(max(row)) + 1 for row in scores]
    np.testing.assert_array_equal(learner.decision_function(X), learner.predict(X))


def test_worked_example() -> None:
    # all scores 0: rank 1 is predicted, E = {1, 2}, each gives half of x
    learner = MulticlassPerceptron(3).fit([[2.0, 0.0]], [3])
    assert learner.coef_.tolist() == [[-1.0, 0.0], [-1.0, 0.0], [2.0, 0.0]]
    assert learner.online_loss_.tolist() == [2.0]


@given(seed=seeds)
@settings(max_examples=60, deadline=None)
def test_prototypes_sum_to_zero(seed: int) -> None:
    X, y = half_integer_problem(seed)
    learner = MulticlassPerceptron(5, epochs=2).fit(X, y)
    assert np.abs(learner.coef_).max() > 0
    np.testing.assert_allclose(learner.coef_.sum(axis=0), 0.0, atol=1e-10)


def test_two_ranks_are_a_perceptron() -> None:
    """With k = 2 the difference of the prototypes moves by 2yx on each mistake, and only then."""
    X, y = half_integer_problem(1, n_ranks=2)
    w, mistakes = np.zeros(X.shape[1]), 0
    for x, side in zip(X, 2 * y - 3, strict=True):
        if (1 if w @ x > 0 else -1) != side:
            w, mistakes = w + 2 * side * x, mistakes + 1
    learner = MulticlassPerceptron(2).fit(X, y)
    np.testing.assert_array_equal(learner.coef_[1] - learner.coef_[0], w)
    assert learner.total_loss_ == mistakes


def test_separable_data_is_learned() -> None:
    rng = np.random.default_rng(2)
    prototypes = rng.normal(size=(4, 6))
    X = rng.normal(size=(400, 6))
    scores = np.sort(X @ prototypes.T, axis=1)
    clear = scores[:, -1] - scores[:, -2] > 0.3
    X, y = X[clear], (X @ prototypes.T).argmax(axis=1)[clear] + 1
    learner = MulticlassPerceptron(4, epochs=200).fit(X, y)
    np.testing.assert_array_equal(learner.predict(X), y)


@given(seed=seeds, cut=st.integers(1, 119))
@settings(max_examples=60, deadline=None)
def test_parts_learn_what_the_whole_learns(seed: int, cut: int) -> None:
    X, y = real_problem(seed)
    whole = MulticlassPerceptron(5).fit(X, y)
    parts = MulticlassPerceptron(5).partial_fit(X[:cut], y[:cut])
    resumed = MulticlassPerceptron.from_params(parts.to_params())
    resumed.partial_fit(X[cut:], y[cut:])
    parts.partial_fit(X[cut:], y[cut:])
    np.testing.assert_equal(parts.to_params(), whole.to_params())
    np.testing.assert_equal(resumed.to_params(), whole.to_params())
    np.testing.assert_array_equal(parts.online_loss_, whole.online_loss_)


def test_exported_learner_scores_with_the_same_bits() -> None:
    X, y = real_problem(3)
    learner = MulticlassPerceptron(5).fit(X, y)
    copy = MulticlassPerceptron.from_params(learner.to_params())
    np.testing.assert_array_equal(copy.prototype_scores(X), learner.prototype_scores(X))
    np.testing.assert_array_equal(copy.predict(X), learner.predict(X))


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
        MulticlassPerceptron(5).fit(X, y)


def test_overflow_is_named_and_leaves_the_learner_as_it_was() -> None:
    X, y = half_integer_problem(4)
    learner = MulticlassPerceptron(5).fit(X, y)
    exported = learner.to_params()
    with pytest.raises(NumericFailureError, match="scale the features"):
        learner.partial_fit(np.full((3, X.shape[1]), 1e200), [1, 3, 5])
    np.testing.assert_equal(learner.to_params(), exported)


def test_misuse_is_named() -> None:
    with pytest.raises(InvalidParameterError):
        MulticlassPerceptron(1).fit([[1.0]], [1])
    with pytest.raises(NotFittedError):
        MulticlassPerceptron(5).predict([[1.0]])
    X, y = half_integer_problem(5)
    learner = MulticlassPerceptron(5).fit(X, y)
    with pytest.raises(InvalidDataError, match="fitted on 5"):
        learner.predict(X[:, :2])
    with pytest.raises(InvalidParameterError, match="call fit"):
        learner.set_params(n_ranks=9).partial_fit(X, y)
