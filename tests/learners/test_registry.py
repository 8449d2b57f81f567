"""What every learner of the registry promises, whatever it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spark_rank.learners import REGISTRY
from spark_rank.learners.errors import (
    InvalidDataError,
    InvalidParameterError,
    LearnerError,
    NotFittedError,
    NumericFailureError,
)

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(40, 5)), RNG.normal(size=(9, 5))
Y = RNG.integers(1, 6, 40)


def make(name: str) -> Any:
    learner = REGISTRY[name]
    return learner(**({"n_ranks": 5} if "n_ranks" in learner.parameters else {}))


@pytest.mark.parametrize("name", REGISTRY)
def test_exports_plain_values_and_scores_the_same_bits_when_read_back(name: str) -> None:
    fitted = make(name).fit(X, Y)
    params = fitted.to_params()
    for key, value in params.items():
        plain = value is None or isinstance(value, (bool, int, float, str))
        assert plain or (isinstance(value, np.ndarray) and value.ndim == 1), key
    again = REGISTRY[name].from_params(params)
    np.testing.assert_array_equal(again.decision_function(NEW), fitted.decision_function(NEW))  # type: ignore[attr-defined]
    assert again.get_params() == fitted.get_params()


@pytest.mark.parametrize("name", REGISTRY)
def test_inputs_stay_as_they_were_and_fit_returns_the_learner(name: str) -> None:
    features, ranks = X.copy(), Y.copy()
    learner = make(name)
    assert learner.fit(features, ranks) is learner
    np.testing.assert_array_equal(features, X)
    np.testing.assert_array_equal(ranks, Y)


@pytest.mark.parametrize("name", REGISTRY)
def test_fitting_twice_gives_the_same_bits(name: str) -> None:
    learner = make(name).fit(X, Y)
    first = learner.decision_function(NEW)
    np.testing.assert_array_equal(learner.fit(X, Y).decision_function(NEW), first)
    np.testing.assert_array_equal(make(name).fit(X, Y).decision_function(NEW), first)


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize(
    ("features", "ratings"),
    [
        (np.empty((0, 5)), []),
        (X, Y[:3]),
        (X[:, 0], Y),
        (X, np.where(Y == 3, np.nan, Y)),
        (np.where(X > 2, np.inf, X), Y),
    ],
)
def test_bad_data_has_a_name(name: str, features: Any, ratings: Any) -> None:
    with pytest.raises(InvalidDataError):
        make(name).fit(features, ratings)


@pytest.mark.parametrize("name", REGISTRY)
def test_one_example_and_equal_ratings_give_a_finite_model(name: str) -> None:
    for features, ratings in ((X[:1], Y[:1]), (X, np.full(40, 3))):
        assert np.isfinite(make(name).fit(features, ratings).decision_function(NEW)).all()


@pytest.mark.parametrize("name", REGISTRY)
def test_scoring_before_learning_has_a_name(name: str) -> None:
    with pytest.raises(NotFittedError, match="call fit"):
        make(name).decision_function(NEW)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_parameter_refuses_what_is_out_of_its_range(name: str) -> None:
    for parameter in REGISTRY[name].parameters:
        learner = make(name).set_params(**{parameter: object()})
        with pytest.raises(InvalidParameterError, match=f"^{parameter}="):
            learner.fit(X, Y)


@pytest.mark.parametrize("name", [name for name in REGISTRY if "C" in REGISTRY[name].parameters])
def test_a_constant_of_zero_is_refused(name: str) -> None:
    with pytest.raises(LearnerError, match="C=0.* a number above 0"):
        make(name).set_params(C=0).fit(X, Y)


@pytest.mark.parametrize("name", ["mprank", "svrank", "ranksvm"])
@pytest.mark.parametrize("kernel", ["linear", "poly", "linear+rbf", "precomputed"])
def test_scores_that_overflow_are_an_error(name: str, kernel: str) -> None:
    learner = make(name).set_params(kernel=kernel, C=1e5)
    features = 1e-2 * X
    learner.fit(features @ features.T if kernel == "precomputed" else features, Y)
    signs = np.sign(RNG.normal(size=(100, 40 if kernel == "precomputed" else 5)))
    with pytest.raises(NumericFailureError, match="scale the features down"):
        learner.decision_function(1.7e308 * signs)
