"""The on-line solver and the stream against the batch solution and the formulas written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spark_rank.learners import MPRank
from spark_rank.learners.errors import (
    InvalidDataError,
    InvalidParameterError,
    NotFittedError,
    NumericFailureError,
)

KERNELS: list[dict[str, Any]] = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "linear+rbf", "gamma": 0.7, "rbf_weight": 0.4},
]


def sample(m: int = 23, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) + 0.7
    return X, rng.integers(1, 6, size=m).astype(float), rng.normal(size=(7, d))


def centred_gram(model: MPRank, X: np.ndarray) -> np.ndarray:
    H = np.eye(len(X)) - 1.0 / len(X)
    return np.asarray(H @ model._kernel()(X, X) @ H)


@pytest.mark.parametrize("options", KERNELS)
@pytest.mark.parametrize("ridge", ["per-example", "fixed"])
def test_converges_to_the_batch_solution(options: dict[str, Any], ridge: str) -> None:
    X, y, new = sample()
    batch = MPRank(2.0, ridge=ridge, **options).fit(X, y)
    online = MPRank(2.0, ridge=ridge, solver="online", tol=1e-15, max_rounds=20_000, **options).fit(
        X, y
    )
    assert_allclose(online.decision_function(new), batch.decision_function(new), rtol=1e-6)
    assert_allclose(online.objective_, batch.objective_, rtol=1e-9)
    assert online.n_rounds_ == len(online.cost_path_) > 1


def test_one_round_is_the_papers_pseudo_code() -> None:
    X, y, _ = sample(11)
    model = MPRank(2.0, kernel="rbf", gamma=0.3, solver="online", max_rounds=1).fit(X, y)
    K, target, m = centred_gram(model, X), y - y.mean(), 11
    alpha = np.zeros(m)
    for i in range(m):
        eta = 1.0 / (2.0 * K[i, i] + m / 2.0)
        alpha[i] += eta * (2.0 * (target[i] - alpha @ K[i]) - m / 2.0 * alpha[i])
    assert_allclose(model.dual_coef_, alpha - alpha.mean(), rtol=1e-10)


def test_the_cost_path_is_the_objective_after_each_round() -> None:
    X, y, _ = sample()
    options: dict[str, Any] = {"kernel": "rbf", "gamma": 0.3, "solver": "online", "tol": 1e-12}
    costs = MPRank(2.0, max_rounds=6, **options).fit(X, y).cost_path_
    for rounds in range(1, 7):
        model = MPRank(2.0, max_rounds=rounds, **options).fit(X, y)
        K = centred_gram(model, X)
        h = K @ model.dual_coef_
        pairs = ((h - y)[:, None] - (h - y)[None, :]) ** 2
        expected = model.dual_coef_ @ h + 2.0 / len(y) ** 2 * pairs.sum()
        assert_allclose(costs[rounds - 1], expected, rtol=1e-6)


def test_stops_when_a_round_changes_little() -> None:
    X, y, _ = sample()
    model = MPRank(2.0, kernel="rbf", solver="online", tol=1e-3).fit(X, y)
    costs = model.cost_path_
    changes = np.abs(np.diff(costs)) / costs[:-1]
    assert changes[-1] <= 1e-3
    assert (changes[:-1] > 1e-3).all()
    assert model.n_rounds_ < model.max_rounds


def test_a_step_that_diverges_is_reported() -> None:
    X, y, _ = sample()
    with pytest.raises(NumericFailureError, match=r"diverged with eta=10.0: lower it"):
        MPRank(2.0, kernel="rbf", solver="online", eta=10.0).fit(X, y)
    small = MPRank(2.0, kernel="rbf", solver="online", eta=0.01, tol=1e-10, max_rounds=5000)
    batch = MPRank(2.0, kernel="rbf").fit(X, y)
    assert_allclose(small.fit(X, y).objective_, batch.objective_, rtol=1e-6)


@pytest.mark.parametrize("options", KERNELS)
def test_the_stream_is_the_coordinate_step_on_explicitly_centred_matrices(
    options: dict[str, Any],
) -> None:
    X, y, new = sample(17)
    model = MPRank(3.0, **options)
    for row, target in zip(X, y, strict=True):
        model.partial_fit(row[None, :], [target])
    alpha = np.empty(0)
    for m in range(1, 18):
        K, target = centred_gram(model, X[:m]), y[:m] - y[:m].mean()
        alpha = np.append(alpha, 0.0)
        ridge = m / (2 * 3.0)
        alpha[-1] = (target[-1] - alpha @ K[-1]) / (K[-1, -1] + ridge)
    assert_allclose(model.dual_coef_, alpha - alpha.mean(), rtol=1e-9, atol=1e-12)
    # scores: the centred expansion, with its mean at the mean rating
    cross = model._kernel()(new, X)
    expected = (cross - model._kernel()(X, X).mean(axis=0)) @ (alpha - alpha.mean()) + y.mean()
    assert_allclose(model.decision_function(new), expected, rtol=1e-9)
    h = K @ alpha
    pairs = ((h - y)[:, None] - (h - y)[None, :]) ** 2
    assert_allclose(model.objective_, alpha @ h + 3.0 / 17**2 * pairs.sum(), rtol=1e-9)


def test_however_the_stream_is_cut_it_learns_the_same() -> None:
    X, y, new = sample(30)
    options: dict[str, Any] = {"kernel": "rbf", "gamma": 0.2}
    whole = MPRank(**options).partial_fit(X, y)
    parts = MPRank(**options).partial_fit(X[:7], y[:7]).partial_fit(X[7:8], y[7:8])
    parts.partial_fit(X[8:], y[8:])
    np.testing.assert_array_equal(whole.decision_function(new), parts.decision_function(new))
    assert (parts.y_min_, parts.y_max_) == (y.min(), y.max())


def test_one_pass_of_the_stream_goes_more_than_half_of_the_way() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 4))
    y = X @ [1.0, -0.5, 0.3, 0.0] + rng.normal(0, 0.5, 400) + 3.0
    options: dict[str, Any] = {"kernel": "rbf", "gamma": 0.2, "C": 20.0}
    constant = 2.0 * 20.0 * float(y.var())
    batch = MPRank(**options).fit(X, y).objective_
    stream = MPRank(**options).partial_fit(X, y).objective_
    assert batch < stream < batch + 0.5 * (constant - batch)


def test_fit_forgets_the_stream() -> None:
    X, y, new = sample()
    model = MPRank(kernel="rbf", gamma=0.3).partial_fit(X[:5], y[:5]).fit(X, y)
    fresh = MPRank(kernel="rbf", gamma=0.3).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(new), fresh.decision_function(new))
    again = model.partial_fit(X[:5], y[:5]).decision_function(new)
    first = MPRank(kernel="rbf", gamma=0.3).partial_fit(X[:5], y[:5]).decision_function(new)
    np.testing.assert_array_equal(again, first)


def test_a_precomputed_kernel_cannot_stream() -> None:
    with pytest.raises(InvalidParameterError, match="cannot stream: use fit"):
        MPRank(kernel="precomputed").partial_fit([[1.0]], [1.0])


@pytest.mark.parametrize("options", [{"kernel": "linear"}, {"kernel": "rbf"}])
def test_leave_pair_out_of_a_stream_is_that_of_all_its_examples(options: dict[str, Any]) -> None:
    X, y, new = sample(20)
    offset = np.linspace(-1.0, 1.0, 20)
    model = MPRank(2.0, **options)
    model.partial_fit(X[:8], y[:8], offset[:8]).partial_fit(X[8:], y[8:], offset[8:])
    before = model.decision_function(new)
    batch = MPRank(2.0, **options, gamma=model.gamma_).fit(X, y, offset)
    assert_allclose(
        model.leave_pair_out(X, y, offset), batch.leave_pair_out(X, y, offset), rtol=1e-9
    )
    np.testing.assert_array_equal(model.decision_function(new), before)


def test_the_first_rows_of_a_stream_decide_its_width() -> None:
    X, y, _ = sample()
    model = MPRank(kernel="rbf").partial_fit(X[:5], y[:5])
    assert model.gamma_ == MPRank(kernel="rbf").fit(X[:5], y[:5]).gamma_
    assert model.gamma_ == model.partial_fit(X[5:], y[5:]).gamma_


@pytest.mark.parametrize("options", KERNELS[::2])
@pytest.mark.parametrize(
    ("features", "words"),
    [
        (np.full((2, 5), 1e200) * [[1.0], [-1.0]], "scale (the features|them) down"),
        (np.ones((2, 1)), "1 features, but it is expecting 5"),
        (np.ones((2, 2)), "2 features, but it is expecting 5"),
        (np.full((2, 5), np.nan), "NaN"),
    ],
)
def test_what_a_stream_cannot_learn_leaves_it_as_it_was(
    features: np.ndarray, words: str, options: dict[str, Any]
) -> None:
    X, y, new = sample()
    model = MPRank(**options).partial_fit(X[:9], y[:9])
    with pytest.raises((InvalidDataError, NumericFailureError), match=words):
        model.partial_fit(features, [1.0, 5.0])
    undisturbed = MPRank(**options).partial_fit(X[:9], y[:9]).partial_fit(X[9:], y[9:])
    after = model.partial_fit(X[9:], y[9:]).decision_function(new)
    np.testing.assert_array_equal(after, undisturbed.decision_function(new))


def test_a_stream_that_overflows_from_the_start_is_an_error() -> None:
    X, y, new = sample()
    for kernel in ("linear", "rbf", "poly"):
        model = MPRank(kernel=kernel)
        with pytest.raises(NumericFailureError, match="scale the features down"):
            model.partial_fit(X * 1e200, y)
        with pytest.raises(NotFittedError):
            model.decision_function(new)


def test_a_model_read_back_scores_but_cannot_stream_on() -> None:
    X, y, new = sample()
    stream = MPRank(kernel="rbf").partial_fit(X, y)
    again = MPRank.from_params(stream.to_params())
    np.testing.assert_array_equal(again.decision_function(new), stream.decision_function(new))
    with pytest.raises(NotFittedError, match="call fit"):
        again.partial_fit(X, y)
    np.testing.assert_array_equal(again.decision_function(new), stream.decision_function(new))


@pytest.mark.parametrize("changed", [{"kernel": "rbf"}, {"gamma": 2.0}, {"degree": 3}])
def test_a_stream_keeps_the_kernel_it_began_with(changed: dict[str, Any]) -> None:
    X, y, _ = sample()
    model = MPRank().partial_fit(X, y).set_params(**changed)
    with pytest.raises(InvalidParameterError, match="when learning began"):
        model.partial_fit(X, y)
    assert model.fit(X, y).partial_fit(X, y) is model
