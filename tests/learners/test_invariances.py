"""What no unit, origin or order of the data may change: MPRank, SVRank, RankSVM, all kernels.

Scores are compared with those of the plain problem, objectives with independent solvers: NumPy's
least squares and SciPy's quadratic programmes on explicit pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from spark_rank.learners import MPRank, RankSVM, SVRank
from spark_rank.learners.errors import InvalidDataError, LearnerError

RNG = np.random.default_rng(0)
# sixteenths: a shift by up to 1e9 and a scale by powers of two leave all their digits
X = np.round(16.0 * RNG.normal(size=(60, 3))) / 16.0
Y = RNG.integers(1, 6, 60).astype(float)
NEW = np.round(16.0 * RNG.normal(size=(9, 3))) / 16.0

SHIFTLESS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": 0.2},
    "rbf, width of the data": {"kernel": "rbf"},
    "linear+rbf": {"kernel": "linear+rbf", "gamma": 0.2},
    "linear+rbf, width of the data": {"kernel": "linear+rbf", "rbf_weight": 0.3},
}
POLY = {"kernel": "poly", "gamma": 0.5}
LEARNERS: dict[str, Any] = {
    "primal": MPRank,
    "dual": lambda C, **kind: MPRank(C, solver="dual", **kind),
    "online": lambda C, **kind: MPRank(C, solver="online", tol=1e-13, max_rounds=20000, **kind),
    "SVRank n=1": lambda C, **kind: SVRank(C, tol=1e-7, max_iter=3000, **kind),
    "SVRank n=2": lambda C, **kind: SVRank(C, power=2, tol=1e-9, **kind),
    "RankSVM": lambda C, **kind: RankSVM(C / 900.0, tol=1e-7, max_iter=3000, **kind),
}
kinds = pytest.mark.parametrize("kind", SHIFTLESS.values(), ids=SHIFTLESS)
learners = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)


def differences(model: Any, rows: np.ndarray) -> np.ndarray:
    """Return scores, but for RankSVM's constant, which stands for nothing."""
    scores = model.decision_function(rows)
    return np.asarray(scores - scores[0]) if isinstance(model, RankSVM) else scores


@pytest.mark.parametrize("shift", [1e4, 1e7, 1e8])
@kinds
@learners
def test_no_shift_of_the_features_is_seen(learner: Any, kind: dict[str, Any], shift: float) -> None:
    near, far = learner(30.0, **kind).fit(X, Y), learner(30.0, **kind).fit(X + shift, Y)
    assert_allclose(far.objective_, near.objective_, rtol=1e-6)
    assert_allclose(differences(far, NEW + shift), differences(near, NEW), atol=2e-3)


@pytest.mark.parametrize("shift", [1e4, 1e7, 1e8])
@kinds
def test_no_shift_is_seen_by_a_stream(kind: dict[str, Any], shift: float) -> None:
    near = MPRank(30.0, **kind).partial_fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:])
    far = MPRank(30.0, **kind).partial_fit(X[:40] + shift, Y[:40])
    far.partial_fit(X[40:] + shift, Y[40:])
    assert_allclose(far.decision_function(NEW + shift), near.decision_function(NEW), atol=1e-5)
    assert_allclose(far.objective_, near.objective_, rtol=1e-6)


@pytest.mark.parametrize("shift", [1e4, 1e7, 1e8])
@kinds
@pytest.mark.parametrize("solver", ["auto", "dual"])
def test_no_shift_is_seen_by_a_path(solver: str, kind: dict[str, Any], shift: float) -> None:
    Cs = [0.1, 10.0, 1000.0]
    near = MPRank.path(X, Y, Cs, solver=solver, **kind)
    far = MPRank.path(X + shift, Y, Cs, solver=solver, **kind)
    assert_allclose(far.leave_pair_out, near.leave_pair_out, rtol=1e-5)
    assert_allclose(far.objectives, near.objectives, rtol=1e-6)
    for model, twin in zip(far.models, near.models, strict=True):
        assert_allclose(
            model.decision_function(NEW + shift), twin.decision_function(NEW), atol=1e-5
        )
        assert_allclose(model.leave_pair_out(X + shift, Y), twin.leave_pair_out(X, Y), rtol=1e-5)


@pytest.mark.parametrize("unit", [2.0**-27, 2.0**-10, 2.0**13, 2.0**27])
@kinds
@learners
def test_a_unit_of_the_features_is_none_of_the_trade_off(
    learner: Any, kind: dict[str, Any], unit: float
) -> None:
    """With kernel values s² times as great, C is to be divided by s²; the width follows."""
    kind = dict(kind)
    plain = learner(30.0, **kind).fit(X, Y)
    if kind.get("gamma") is not None:
        kind["gamma"] = kind["gamma"] / unit**2
    C = 30.0
    if kind["kernel"] == "linear+rbf":
        kind["rbf_weight"] = kind.get("rbf_weight", 1.0) * unit**2
    if "linear" in kind["kernel"]:
        C /= unit**2
    scaled = learner(C, **kind).fit(unit * X, Y)
    assert_allclose(differences(scaled, unit * NEW), differences(plain, NEW), atol=1e-3)
    assert_allclose(scaled.objective_ * (30.0 / C), plain.objective_, rtol=1e-5)


@pytest.mark.parametrize("unit", [1e-8, 1e8])
@kinds
@pytest.mark.parametrize("name", ["primal", "dual", "online", "SVRank n=1", "SVRank n=2"])
def test_a_unit_of_the_ratings_is_one_of_the_scores(
    name: str, kind: dict[str, Any], unit: float
) -> None:
    """The n-th power of a difference against the square of a norm: C s^n = constant · s²."""
    C = 30.0 * unit if name == "SVRank n=1" else 30.0
    plain, scaled = LEARNERS[name](30.0, **kind), LEARNERS[name](C, **kind)
    if isinstance(scaled, SVRank):
        scaled.set_params(epsilon=0.25 * unit)
    scores = plain.fit(X, Y).decision_function(NEW)
    assert_allclose(scaled.fit(X, unit * Y).decision_function(NEW), unit * scores, atol=1e-3 * unit)
    assert_allclose(scaled.objective_, unit**2 * plain.objective_, rtol=1e-5)


@pytest.mark.parametrize("shift", [-3.0, 1e7, 1e8])
@kinds
@learners
def test_a_shift_of_the_ratings_is_one_of_the_scores(
    learner: Any, kind: dict[str, Any], shift: float
) -> None:
    plain, moved = learner(30.0, **kind).fit(X, Y), learner(30.0, **kind).fit(X, Y + shift)
    on_scale = 0.0 if isinstance(plain, RankSVM) else shift
    assert_allclose(
        moved.decision_function(NEW) - on_scale, plain.decision_function(NEW), atol=2e-3
    )


@pytest.mark.parametrize("kind", [*SHIFTLESS.values(), POLY], ids=[*SHIFTLESS, "poly"])
@learners
def test_the_order_of_the_rows_is_nothing(learner: Any, kind: dict[str, Any]) -> None:
    order = np.random.default_rng(4).permutation(len(X))
    plain, turned = learner(30.0, **kind).fit(X, Y), learner(30.0, **kind).fit(X[order], Y[order])
    assert_allclose(differences(turned, NEW), differences(plain, NEW), atol=2e-3)


@pytest.mark.parametrize("kind", [*SHIFTLESS.values(), POLY], ids=[*SHIFTLESS, "poly"])
@learners
def test_every_row_twice_is_a_pair_four_times(learner: Any, kind: dict[str, Any]) -> None:
    """The mean over pairs stays; RankSVM's sum is four times as great."""
    model = learner(30.0, **kind).fit(X, Y)
    twice = learner(30.0, **kind)
    if isinstance(twice, RankSVM):
        twice.set_params(C=twice.C / 4.0)
    twice.fit(np.repeat(X, 2, axis=0), np.repeat(Y, 2))
    assert_allclose(differences(twice, NEW), differences(model, NEW), atol=2e-3)
    assert_allclose(twice.objective_, model.objective_, rtol=1e-6)


@pytest.mark.parametrize("constant", [0.0, 1e3, 1e7])
@learners
def test_a_kernel_is_what_it_is_on_differences(learner: Any, constant: float) -> None:
    """A constant in a precomputed kernel is nothing, nor is what makes distances of products."""
    gram, cross = X @ X.T, NEW @ X.T
    squares = np.square(X).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * gram
    far = np.square(NEW).sum(axis=1)[:, None] + squares - 2.0 * cross
    plain = learner(30.0, kernel="linear").fit(X, Y)
    for values, others in ((gram, cross), (-0.5 * distances, -0.5 * far)):
        model = learner(30.0, kernel="precomputed").fit(values + constant, Y)
        scores = differences(model, others + constant)
        assert_allclose(scores, differences(plain, NEW), atol=2e-3)
        assert_allclose(model.objective_, plain.objective_, rtol=1e-5)


def test_squared_distances_are_a_kernel_for_everything() -> None:
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    path = MPRank.path(-squares, Y, [0.5, 5.0], kernel="precomputed")
    for C, error, twin in zip(path.Cs, path.leave_pair_out, path.models, strict=True):
        model = MPRank(C, kernel="precomputed").fit(-squares, Y)
        assert_allclose(model.objective_, twin.objective_, rtol=1e-10)
        assert_allclose(model.leave_pair_out(-squares, Y), error, rtol=1e-8)
        # the kernel 2 x·x′ differs from −‖x − x′‖² by what α does not see
        linear = MPRank(2.0 * C).fit(X, Y)
        assert_allclose(model.decision_function(-squares), linear.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-160, 1.0, 1e7, 1e150])
@pytest.mark.parametrize("rating", [3.0, 0.1])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "linear+rbf"])
@pytest.mark.parametrize("learner", [MPRank, SVRank])
def test_equal_ratings_are_that_rating_exactly(
    learner: Any, kernel: str, rating: float, unit: float
) -> None:
    wide = unit * np.random.default_rng(0).normal(size=(30, 40))
    for rows in (wide, wide[:, :5]):
        model = learner(1000.0, kernel=kernel, gamma=0.3).fit(rows, np.full(30, rating))
        assert_array_equal(model.decision_function(rows), rating)
        assert_array_equal(model.decision_function(rows + 1.0), rating)
        assert model.objective_ == 0.0
    if learner is MPRank:
        for model in MPRank.path(wide[:, :5], np.full(30, rating), [1.0], kernel="linear").models:
            assert_array_equal(model.decision_function(wide[:, :5]), rating)


@pytest.mark.parametrize("kind", [*SHIFTLESS.values(), POLY], ids=[*SHIFTLESS, "poly"])
@learners
def test_a_failure_leaves_all_as_it_was(learner: Any, kind: dict[str, Any]) -> None:
    model = learner(30.0, **kind)
    with pytest.raises(InvalidDataError):
        model.fit(X, np.full(len(X), np.nan))
    with pytest.raises(LearnerError, match="call fit first"):
        model.decision_function(NEW)
    expected = learner(30.0, **kind).fit(X, Y).decision_function(NEW)
    assert_array_equal(model.fit(X, Y).decision_function(NEW), expected)
    for bad in (np.full_like(X, np.inf), 1e300 * X):
        with pytest.raises(LearnerError):
            model.fit(bad, Y)
        assert_array_equal(model.decision_function(NEW), expected)
    assert_array_equal(model.fit(X, Y).decision_function(NEW), expected)
