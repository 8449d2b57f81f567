"""The two baselines, and the parameter declarations every learner shares."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spark_rank.learners import BASELINES, REGISTRY, ConstantScorer, ItemOffsetScorer, Learner
from spark_rank.learners.errors import InvalidDataError, InvalidParameterError
from spark_rank.learners.parameters import Choice, Integer, Real

X = np.zeros((3, 2))
Y = np.array([1.0, 2.0, 6.0])


def test_the_constant_is_the_mean_rating() -> None:
    assert_allclose(ConstantScorer().fit(X, Y).decision_function(np.zeros((2, 9))), [3.0, 3.0])


def test_the_item_offset_is_shifted_to_the_users_mean() -> None:
    offset = np.array([0.5, -0.5, 1.5])
    model = ItemOffsetScorer().fit(X, Y, offset=offset)
    scores = model.decision_function(X, offset=offset)
    assert_allclose(scores, offset + 2.5)
    assert_allclose(scores.mean(), Y.mean())


def test_the_item_offset_needs_one() -> None:
    with pytest.raises(InvalidDataError, match="needs an offset"):
        ItemOffsetScorer().fit(X, Y)


@pytest.mark.parametrize("name", [*REGISTRY, *BASELINES])
def test_every_registered_learner_declares_what_its_constructor_takes(name: str) -> None:
    learner: type[Learner] = {**REGISTRY, **BASELINES}[name]
    arguments = inspect.signature(learner.__init__).parameters.keys() - {"self"}
    assert arguments - {"args", "kwargs"} == learner.parameters.keys()
    required = [
        p.name
        for p in inspect.signature(learner.__init__).parameters.values()
        if p.default is p.empty and p.name in learner.parameters
    ]
    if not required:
        learner().check_parameters()


@pytest.mark.parametrize(
    ("parameter", "good", "bad"),
    [
        (Real("", above=0.0, at_most=2.0), [1e-9, 2, 2.0], [0, -1, 3, "1", True, None]),
        (Real("", at_least=0.0, optional=True), [0, None], [-0.1, float("nan")]),
        (Integer("", at_least=1), [1, 7], [0, 1.0, True, None]),
        (Choice("", options=("a", 1)), ["a", 1], ["b", True, None]),
    ],
)
def test_parameters_accept_their_range_and_nothing_else(
    parameter: Real, good: list[object], bad: list[object]
) -> None:
    for value in good:
        parameter.check("p", value)
    for value in bad:
        with pytest.raises(InvalidParameterError, match="^p=.*is not allowed: give"):
            parameter.check("p", value)
