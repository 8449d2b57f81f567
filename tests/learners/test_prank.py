"""PRank against the paper's pseudo-code, its lemma, its mistake bound and its kernel form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from ordinal_twins import (
    Floats,
    Ints,
    NaivePrimal,
    NaiveRun,
    half_integer_problem,
    half_up,
    lane_dot,
    naive_rank,
    real_problem,
    running_average,
)

from spark_rank.learners.compiled.dot import dot
from spark_rank.learners.errors import (
    InvalidDataError,
    InvalidParameterError,
    NotFittedError,
    NumericFailureError,
)
from spark_rank.learners.feature_maps import polynomial_features
from spark_rank.learners.perceptrons import rounds
from spark_rank.learners.prank import PRank

KERNELS: dict[str, Callable[[Floats, Floats], float]] = {
    "linear": lambda a, b: float(a @ b),
    "poly": lambda a, b: float(a @ b + 1.0) ** 2,
    "rbf": lambda a, b: float(np.exp(-((a - b) @ (a - b)))),
    "linear+rbf": lambda a, b: float(a @ b + np.exp(-((a - b) @ (a - b)))),
}
READOUTS = ("last", "averaged", "voted")
seeds = st.integers(0, 10_000)


@njit
def compiled_dot(a: Floats, b: Floats) -> float:
    return dot(a, b)


def same_state(left: PRank, right: PRank) -> None:
    """Assert equal bits in everything that was learned."""
    for name in left.exported_state():
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)


# the pseudo-code


def test_worked_example() -> None:
    """Three rounds by hand, k = 3: predictions 3, 3, 1 for ranks 1, 3, 2."""
    learner = PRank(3).fit([[1.0], [-1.0], [2.0]], [1, 3, 2])
    # round 1: score 0 ≥ b = (0, 0), ŷ = 3, τ = (−1, −1): w = −2, b = (1, 1)
    # round 2: score 2 ≥ b, ŷ = 3 = y
    # round 3: score −4 < 1, ŷ = 1, τ = (+1, 0): w = −2 + 2 = 0, b = (0, 1)
    assert learner.coef_.tolist() == [0.0]
    assert learner.thresholds_.tolist() == [0.0, 1.0]
    assert learner.online_loss_.tolist() == [2.0, 1.0, 1.0]


@pytest.mark.parametrize("problem", [half_integer_problem, real_problem])
@given(seed=seeds, n_ranks=st.integers(2, 7), n_features=st.integers(1, 20))
@settings(max_examples=30, deadline=None)
def test_equals_the_pseudo_code_to_the_bit(
    problem: Any, seed: int, n_ranks: int, n_features: int
) -> None:
    X, y = problem(seed, 60, n_features, n_ranks)
    twin = NaivePrimal.start(n_ranks, n_features)
    losses = [abs(twin.learn(x, rank) - int(rank)) for x, rank in zip(X, y, strict=True)]
    learner = PRank(n_ranks).fit(X, y)
    np.testing.assert_array_equal(learner.coef_, twin.coef)
    np.testing.assert_array_equal(learner.thresholds_, twin.thresholds)
    np.testing.assert_array_equal(learner.online_loss_, running_average(losses))
    assert learner.predict(X).tolist() == [twin.predict(x) for x in X]
    assert learner.decision_function(X).tolist() == [twin.score(x) for x in X]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 23, 300])
def test_dot_adds_in_the_documented_order(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(20):
        a, b = rng.normal(size=(2, size)) * 10.0 ** rng.integers(-8, 8, size=(2, size))
        assert compiled_dot(a, b) == lane_dot(a, b)


def test_first_prediction_is_the_highest_rank() -> None:
    for rank in range(1, 6):
        assert PRank(5).fit([[0.3]], [rank]).online_loss_[0] == 5 - rank


def test_a_score_on_a_threshold_ranks_above_it() -> None:
    learner = PRank(3)
    learner.coef_, learner.thresholds_ = np.array([1.0]), np.array([-0.5, 0.5])
    assert learner.predict([[-0.75], [-0.5], [0.25], [0.5]]).tolist() == [1, 2, 2, 3]


# lemma 1, theorem 2


@given(seed=seeds, n_ranks=st.integers(2, 8))
@settings(max_examples=40, deadline=None)
def test_thresholds_stay_ordered_and_bound_the_loss(seed: int, n_ranks: int) -> None:
    X, y = half_integer_problem(seed, 80, 3, n_ranks)
    learner = PRank(n_ranks, readout="voted").fit(X, y)
    rules = learner.rule_thresholds_
    assert (np.diff(rules, axis=1) >= 0).all()
    losses = np.diff(np.rint(learner.online_loss_ * np.arange(1, len(y) + 1)), prepend=0)
    n_taus = np.abs(np.diff(rules, axis=0)).sum(axis=1)
    assert set(np.abs(np.diff(rules, axis=0)).ravel()) <= {0.0, 1.0}
    assert (losses[learner.support_rounds_ - 1] <= n_taus).all()
    assert np.count_nonzero(losses) == len(learner.support_rounds_)


@given(seed=seeds, n_ranks=st.integers(2, 6), n_features=st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_mistake_bound(seed: int, n_ranks: int, n_features: int) -> None:
    rng = np.random.default_rng(seed)
    rule = rng.normal(size=n_features + n_ranks - 1)
    rule[n_features:].sort()
    rule /= np.linalg.norm(rule)
    coef, thresholds = rule[:n_features], rule[n_features:]
    X = rng.normal(size=(200, n_features))
    distances = X @ coef - thresholds[:, None]
    y = 1 + (distances >= 0).sum(axis=0)
    sides = np.where(y[None, :] <= np.arange(1, n_ranks)[:, None], -1, 1)
    margins = (distances * sides).min(axis=0)
    wide = margins > np.quantile(margins, 0.3)
    X, y, margin = X[wide], y[wide], margins[wide].min()
    radius = np.linalg.norm(X, axis=1).max()
    learner = PRank(n_ranks, epochs=20).fit(X, y)
    assert learner.total_loss_ <= (n_ranks - 1) * (radius**2 + 1) / margin**2


# the kernel form


@pytest.mark.parametrize("kernel", ["poly", "rbf", "linear+rbf"])
def test_kernel_form_equals_its_pseudo_code(kernel: str) -> None:
    X, y = real_problem(3, 90, 3)
    X = X / np.abs(X).max(axis=0)
    twin = NaiveRun(5, KERNELS[kernel]).learn(X, y)
    learner = PRank(5, kernel=kernel).fit(X, y)
    last = twin.rules[-1]
    assert learner.support_rounds_.tolist() == [t + 1 for t in last.weights]
    assert learner.coef_.tolist() == list(last.weights.values())
    assert learner.thresholds_.tolist() == last.thresholds
    np.testing.assert_array_equal(learner.online_loss_, running_average(twin.losses))
    new = np.random.default_rng(4).normal(size=(40, 3))
    expected = [twin.score(last, x) for x in new]
    np.testing.assert_allclose(learner.decision_function(new), expected, rtol=1e-10, atol=1e-10)
    assert learner.predict(new).tolist() == [naive_rank(s, last.thresholds) for s in expected]


@given(seed=seeds, n_features=st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_polynomial_kernel_is_linear_on_the_explicit_map(seed: int, n_features: int) -> None:
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(80, n_features)), rng.normal(size=(30, n_features))
    y = rng.integers(1, 6, 80)
    dual = PRank(5, kernel="poly").fit(X, y)
    primal = PRank(5).fit(polynomial_features(X), y)
    np.testing.assert_array_equal(dual.online_loss_, primal.online_loss_)
    np.testing.assert_array_equal(dual.thresholds_, primal.thresholds_)
    np.testing.assert_array_equal(dual.predict(new), primal.predict(polynomial_features(new)))
    mapped = dual.coef_ @ polynomial_features(dual.support_vectors_)
    np.testing.assert_allclose(mapped, primal.coef_, rtol=1e-9, atol=1e-9)


def test_explicit_map_has_the_kernel_as_dot_product() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(7, 4)), rng.normal(size=(5, 4))
    products = polynomial_features(A) @ polynomial_features(B).T
    np.testing.assert_allclose(products, (A @ B.T + 1.0) ** 2, rtol=1e-12)
    assert polynomial_features(A).shape == (7, 15)


# read-outs


def problem_for(kernel: str, seed: int) -> tuple[Floats, Ints]:
    """Half-integers where the kernel is exact on them; else features that make no ties."""
    X, y = half_integer_problem(seed, 50, 3)
    noise = np.random.default_rng(seed).normal(size=X.shape)
    return (X + 0.1 * noise if kernel == "rbf" else X), y


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_averaged_is_the_mean_rule_over_the_rounds(kernel: str, seed: int) -> None:
    X, y = problem_for(kernel, seed)
    twin = NaiveRun(5, KERNELS[kernel]).learn(X, y)
    learner = PRank(5, kernel=kernel, readout="averaged").fit(X, y)
    new = np.random.default_rng(seed).normal(size=(10, 3))
    scores = [np.mean([twin.score(rule, x) for rule in twin.after_round]) for x in new]
    thresholds = np.mean([rule.thresholds for rule in twin.after_round], axis=0)
    np.testing.assert_allclose(learner.decision_function(new), scores, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(learner.thresholds_, thresholds, rtol=1e-14)
    assert (np.diff(learner.thresholds_) >= 0).all()


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_voted_is_the_mean_rank_weighted_by_survival(kernel: str, seed: int) -> None:
    X, y = problem_for(kernel, seed)
    twin = NaiveRun(5, KERNELS[kernel]).learn(X, y)
    learner = PRank(5, kernel=kernel, readout="voted").fit(X, y)
    assert learner.votes().tolist() == [rule.survived for rule in twin.rules]
    new = np.random.default_rng(seed).normal(size=(10, 3))
    for x, score, rank in zip(
        new, learner.decision_function(new), learner.predict(new), strict=True
    ):
        votes = [
            rule.survived * naive_rank(twin.score(rule, x), rule.thresholds) for rule in twin.rules
        ]
        total = sum(rule.survived for rule in twin.rules)
        assert score == sum(votes) / total
        assert rank == half_up(sum(votes), total)


def test_voted_linear_rules_score_by_their_own_weights() -> None:
    X, y = [[-1.0], [-3.0], [1.0], [-2.0], [0.0], [-1.0], [-1.0]], [2, 3, 2, 1, 2, 3, 3]
    voted = PRank(3, readout="voted").fit(X, y)
    # the surviving rules give 2.5 there; by kernel values one of them fell below its threshold
    assert voted.decision_function([[0.1]]).tolist() == [2.5]
    assert voted.predict([[0.1]]).tolist() == [3]


@given(seed=seeds, n_features=st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_voted_linear_is_the_vote_of_the_rules_of_the_run(seed: int, n_features: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-5, 6, (40, n_features)) / 10.0, rng.integers(1, 6, 40)
    new, last = rng.integers(-5, 6, (20, n_features)) / 10.0, PRank(5).fit(X[:1], y[:1])
    voted = PRank(5, readout="voted").fit(X, y)
    survived = int(last.total_loss_ == 0)
    sums = np.full(20, 5 * survived)  # of the first rule
    for x, rank in zip(X[1:], y[1:], strict=True):
        ranks, lost = last.predict(new), last.total_loss_
        last.partial_fit([x], [rank])
        if last.total_loss_ == lost:
            survived, sums = survived + 1, sums + ranks
    if survived:
        assert voted.votes().sum() == survived
        np.testing.assert_array_equal(voted.decision_function(new), sums / survived)


def test_voting_without_survivors_leaves_it_to_the_last_rule() -> None:
    X, y = [[1.0], [1.0]], [1, 2]
    voted, last = PRank(3, readout="voted").fit(X, y), PRank(3).fit(X, y)
    assert voted.online_loss_.tolist() == [2.0, 1.5]
    new = np.linspace(-3, 3, 13)[:, None]
    np.testing.assert_array_equal(voted.predict(new), last.predict(new))


def test_readouts_share_the_run() -> None:
    X, y = real_problem(1)
    curves = [PRank(5, readout=readout).fit(X, y).online_loss_ for readout in READOUTS]
    np.testing.assert_array_equal(curves[0], curves[1])
    np.testing.assert_array_equal(curves[0], curves[2])


# going on


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@given(seed=seeds, cut=st.integers(1, 39))
@settings(max_examples=20, deadline=None)
def test_parts_learn_what_the_whole_learns(readout: str, kernel: str, seed: int, cut: int) -> None:
    X, y = real_problem(seed, 40, 11)
    X = X / np.abs(X).max(axis=0)
    whole = PRank(5, kernel=kernel, readout=readout).fit(X, y)
    parts = PRank(5, kernel=kernel, readout=readout)
    parts.partial_fit(X[:cut], y[:cut])
    resumed = PRank.from_params(parts.to_params()).partial_fit(X[cut:], y[cut:])
    parts.partial_fit(X[cut:], y[cut:])
    same_state(whole, parts)
    same_state(whole, resumed)
    np.testing.assert_array_equal(whole.online_loss_, parts.online_loss_)
    np.testing.assert_array_equal(whole.online_loss_[cut:], resumed.online_loss_)


@pytest.mark.parametrize("readout", READOUTS)
def test_epochs_repeat_the_sequence(readout: str) -> None:
    X, y = real_problem(5)
    repeated = PRank(5, readout=readout).fit(np.tile(X, (3, 1)), np.tile(y, 3))
    same_state(PRank(5, readout=readout, epochs=3).fit(X, y), repeated)


def test_fit_starts_anew() -> None:
    X, y = real_problem(6)
    learner = PRank(5, kernel="poly", readout="voted").fit(X, y)
    learner.set_params(kernel="linear", readout="averaged").fit(X, y)
    same_state(learner, PRank(5, readout="averaged").fit(X, y))


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_exported_learner_scores_with_the_same_bits(readout: str, kernel: str) -> None:
    X, y = real_problem(7, n_features=4)
    learner = PRank(5, kernel=kernel, readout=readout).fit(X, y)
    exported = learner.to_params()
    assert all(np.ndim(value) <= 1 for value in exported.values())
    copy = PRank.from_params(exported)
    np.testing.assert_array_equal(copy.decision_function(X), learner.decision_function(X))
    np.testing.assert_array_equal(copy.predict(X), learner.predict(X))
    assert copy.get_params() == learner.get_params()


# input


def test_one_example_and_equal_ranks_are_learned() -> None:
    assert PRank(4).fit([[2.0]], [4]).coef_.tolist() == [0.0]
    X, y = half_integer_problem(8)
    assert PRank(5).fit(X, np.full(len(y), 5)).total_loss_ == 0
    learner = PRank(5, epochs=50).fit(X, np.full(len(y), 2))
    assert learner.predict(X).tolist() == [2] * len(y)
    assert learner.online_loss_[-1] < learner.online_loss_[0]


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_inputs_are_unchanged_whatever_their_layout(kernel: str) -> None:
    X, y = half_integer_problem(9)
    before = X.copy(), y.copy()
    learner = PRank(5, kernel=kernel, readout="voted").fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    frozen = X.copy()
    frozen.flags.writeable = False
    for same in (X.astype(np.float32), np.asfortranarray(X), np.repeat(X, 2, 0)[::2], frozen):
        same_state(learner, PRank(5, kernel=kernel, readout="voted").fit(same, y.tolist()))
    assert len(rounds.prank_pass.signatures) == 1


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [np.nan], [1.0]], [1, 2, 3], "row 1 of X"),
        ([[1.0], [1.0], [np.inf]], [1, 2, 3], "row 2 of X"),
        ([[1.0]], [0], "from 1 to 5"),
        ([[1.0]], [6], "from 1 to 5"),
        ([[1.0]], [2.5], "from 1 to 5"),
        ([[1.0]], [np.nan], "drop those examples"),
        (np.empty((0, 2)), [], "at least one"),
        ([1.0, 2.0], [1, 2], "two dimensions"),
        ([[1.0], [2.0]], [1], "one per row"),
    ],
)
def test_bad_data_is_named(X: Any, y: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        PRank(5).fit(X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_rows_are_noticed_even_where_the_weight_is_zero(bad: float) -> None:
    with pytest.raises(InvalidDataError, match="row 0 of X"):
        PRank(5).fit([[bad, 1.0]], [5])
    learner = PRank(5).fit([[1.0, 1.0]], [5])
    with pytest.raises(InvalidDataError, match="row 0 of X"):
        learner.predict([[bad, 1.0]])


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_overflow_is_named_and_leaves_the_learner_as_it_was(kernel: str) -> None:
    X, y = half_integer_problem(10)
    learner = PRank(5, kernel=kernel, readout="averaged").fit(X, y)
    exported = learner.to_params()
    huge = np.full((2, X.shape[1]), 1e200)
    with pytest.raises(NumericFailureError, match="scale the features"):
        learner.partial_fit(huge, [1, 3])
    np.testing.assert_equal(learner.to_params(), exported)


@pytest.mark.parametrize(
    "options",
    [
        {"n_ranks": 1},
        {"n_ranks": 2.0},
        {"n_ranks": 5, "kernel": "precomputed"},
        {"n_ranks": 5, "epochs": 0},
        {"n_ranks": 5, "readout": "best"},
        {"n_ranks": 5, "gamma": 0.0},
    ],
)
def test_bad_parameters_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError):
        PRank(**options).fit([[1.0]], [1])


def test_scoring_needs_learning_and_the_same_features() -> None:
    for readout in READOUTS:
        with pytest.raises(NotFittedError):
            PRank(5, readout=readout).predict([[1.0]])
    X, y = half_integer_problem(11)
    with pytest.raises(InvalidDataError, match="fitted on 5"):
        PRank(5).fit(X, y).predict(X[:, :3])
    with pytest.raises(InvalidDataError, match="fitted on 5"):
        PRank(5).fit(X, y).partial_fit(X[:, :3], y)


def test_the_form_cannot_change_on_the_way() -> None:
    X, y = half_integer_problem(12)
    with pytest.raises(InvalidParameterError, match="call fit"):
        PRank(5).fit(X, y).set_params(kernel="poly").partial_fit(X, y)
    with pytest.raises(InvalidParameterError, match="call fit"):
        PRank(5).fit(X, y).set_params(n_ranks=9).partial_fit(X, y)


def test_no_rows_to_score() -> None:
    X, y = half_integer_problem(13)
    for kernel in ("linear", "poly"):
        for readout in READOUTS:
            learner: PRank = PRank(5, kernel=kernel, readout=readout).fit(X, y)
            ranks: Ints = learner.predict(X[:0])
            assert ranks.shape == (0,)
