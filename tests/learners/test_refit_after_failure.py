"""A call that fails leaves a learner exactly as it was; one that never learned stays unfitted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spark_rank.learners import OAP, MulticlassPerceptron, PRank, RankBoost, WidrowHoff
from spark_rank.learners.errors import LearnerError, NotFittedError

Floats = NDArray[np.float64]
Make = Callable[[], Any]

ONLINE: dict[str, Make] = {
    **{f"prank {kernel} {readout}": (lambda k=kernel, r=readout: PRank(5, kernel=k, readout=r))
       for kernel in ("linear", "poly", "rbf") for readout in ("last", "averaged", "voted")},
    **{f"oap {combine} {sampling}":
       (lambda c=combine, s=sampling: OAP(5, n_members=4, combine=c, sampling=s))
       for combine in ("bpm", "bagging", "voted") for sampling in ("bernoulli", "poisson")},
    "widrow_hoff": lambda: WidrowHoff(5),
    "perceptron": lambda: MulticlassPerceptron(5),
}  # fmt: skip
ALL: dict[str, Make] = {
    **ONLINE,
    "rankboost": lambda: RankBoost(5),
    "rankboost abstain": lambda: RankBoost(5, missing="abstain"),
}
online = pytest.mark.parametrize("name", ONLINE)
every = pytest.mark.parametrize("name", ALL)


def examples(seed: int) -> tuple[Floats, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    return rng.integers(-8, 9, (30, 3)) / 8.0, rng.integers(1, 6, 30)


def failures(name: str) -> dict[str, tuple[Any, Any]]:
    X, y = examples(1)
    missing, endless, huge = X.copy(), X.copy(), X.copy()
    missing[-1, 0], endless[20, 1], huge[15:] = np.nan, np.inf, 1e300
    found: dict[str, tuple[Any, Any]] = {
        "an infinite feature in the middle": (endless, y),
        "an unknown target": (X, np.where(np.arange(30) == 29, np.nan, y)),
        "too few targets": (X, y[:-1]),
    }
    if name.startswith("rankboost"):
        return found
    ranks = np.where(np.arange(30) == 29, 6, y)
    found |= {"a missing feature at the end": (missing, y), "an unknown rank": (X, ranks)}
    if "rbf" not in name:  # the Gaussian of what is far is 0
        found["scores that overflow on the way"] = (huge, y)
    return found


def same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray):
        return bool(left.dtype == right.dtype and np.array_equal(left, right))
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if hasattr(left, "__dict__"):
        return same_state(vars(left), vars(right))
    return bool(left == right)


def same_state(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return left.keys() == right.keys() and all(same(left[n], right[n]) for n in left)


@every
def test_a_failed_fit_changes_nothing(name: str) -> None:
    X, y = examples(0)
    learner = ALL[name]().fit(X, y)
    before, scores = copy.deepcopy(vars(learner)), learner.decision_function(X)
    for what, bad in failures(name).items():
        with pytest.raises(LearnerError):
            learner.fit(*bad)
        assert same_state(vars(learner), before), what
    np.testing.assert_array_equal(learner.decision_function(X), scores)


@every
def test_a_first_fit_that_fails_leaves_it_unfitted(name: str) -> None:
    X, y = examples(0)
    for what, bad in failures(name).items():
        learner = ALL[name]()
        fresh = copy.deepcopy(vars(learner))
        with pytest.raises(LearnerError):
            learner.fit(*bad)
        assert same_state(vars(learner), fresh), what
        with pytest.raises(NotFittedError):
            learner.decision_function(X)
        assert same_state(vars(learner.fit(X, y)), vars(ALL[name]().fit(X, y)))


@online
def test_a_failed_part_changes_nothing(name: str) -> None:
    X, y = examples(0)
    learner, never_failed = ONLINE[name](), ONLINE[name]()
    for start in (0, 10, 20):
        part = slice(start, start + 10)
        before = copy.deepcopy(vars(learner))
        for what, bad in failures(name).items():
            with pytest.raises(LearnerError):
                learner.partial_fit(*bad)
            assert same_state(vars(learner), before), what
        if start:
            with pytest.raises(LearnerError, match="features"):
                learner.partial_fit(X[part, :2], y[part])
        learner.partial_fit(X[part], y[part])
        never_failed.partial_fit(X[part], y[part])
    assert same_state(vars(learner), vars(never_failed))
    np.testing.assert_array_equal(learner.predict(X), never_failed.predict(X))


@every
def test_an_interruption_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = examples(0)
    learner = ALL[name]().fit(X, y)
    before = copy.deepcopy(vars(learner))
    last = {"rankboost": "_keep"}.get(name.partition(" ")[0], "_count")

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(learner), last, interrupted)
    for call in ("fit", "partial_fit") if name in ONLINE else ("fit",):
        with pytest.raises(KeyboardInterrupt):
            getattr(learner, call)(X[::-1], y[::-1])
        assert same_state(vars(learner), before)


def test_members_that_cannot_be_combined_change_nothing() -> None:
    X, y = examples(0)
    ensemble = OAP(5, n_members=4).fit(X, y)
    before = copy.deepcopy(vars(ensemble))
    groups = [ensemble.train_members(X, y, first=0, last=2),
              ensemble.train_members(X, y, first=2, last=4)]  # fmt: skip
    for wrong in ((groups[:1], X, y), (groups, X[::-1], y), (groups, X, y[::-1])):
        with pytest.raises(LearnerError):
            ensemble.combine_groups(*wrong)
        assert same_state(vars(ensemble), before)
