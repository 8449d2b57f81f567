"""MPRank against the paper's double sum, scikit-learn, and identities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import check_grad, minimize
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

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
    {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
    {"kernel": "linear+rbf", "gamma": 0.7, "rbf_weight": 0.4},
]


def sample(m: int = 23, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) + 0.7
    y = rng.integers(1, 6, size=m).astype(float)
    return X, y, rng.normal(size=(7, d))


def paper_objective(w: np.ndarray, X: np.ndarray, y: np.ndarray, C: float) -> float:
    """Eq. 8 with n = 2, as printed: the sum over all pairs."""
    h = X @ w
    total = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            total += ((h[j] - h[i]) - (y[j] - y[i])) ** 2
    return float(w @ w + C / len(y) ** 2 * total)


def paper_gradient(w: np.ndarray, X: np.ndarray, y: np.ndarray, C: float) -> np.ndarray:
    h = X @ w
    gradient = 2.0 * w
    for i in range(len(y)):
        for j in range(len(y)):
            residual = (h[j] - h[i]) - (y[j] - y[i])
            gradient = gradient + 2.0 * C / len(y) ** 2 * residual * (X[j] - X[i])
    return gradient


@pytest.mark.parametrize("solver", ["primal", "dual", "auto"])
def test_minimises_the_papers_double_sum(solver: str) -> None:
    X, y, _ = sample()
    model = MPRank(3.0, solver=solver).fit(X, y)
    assert check_grad(paper_objective, paper_gradient, model.coef_, X, y, 3.0) < 1e-4
    assert_allclose(paper_gradient(model.coef_, X, y, 3.0), 0.0, atol=1e-12)
    assert_allclose(model.objective_, paper_objective(model.coef_, X, y, 3.0), rtol=1e-12)
    found = minimize(paper_objective, np.zeros(5), (X, y, 3.0), jac=paper_gradient, tol=1e-12)
    assert_allclose(model.coef_, found.x, atol=1e-6)


def test_is_ridge_regression_with_a_free_intercept() -> None:
    X, y, new = sample()
    model = MPRank(2.0).fit(X, y)
    twin = Ridge(alpha=len(y) / (2 * 2.0)).fit(X, y)
    assert_allclose(model.decision_function(new), twin.predict(new), rtol=1e-12)
    assert_allclose(model.intercept_, twin.intercept_, rtol=1e-11)


@pytest.mark.parametrize("options", KERNELS[1:3])
@pytest.mark.parametrize("ridge", ["per-example", "fixed"])
@pytest.mark.parametrize("growth", [0.0, 0.03])
def test_is_kernel_ridge_regression_on_centred_data(
    options: dict[str, Any], ridge: str, growth: float
) -> None:
    X, y, new = sample()
    alpha = len(y) / (2 * 4.0) if ridge == "per-example" else 1 / 4.0
    alpha += growth * len(y)
    model = MPRank(4.0, ridge=ridge, growth=growth, **options).fit(X, y)
    gram = model._kernel()(X, X)
    H = np.eye(len(y)) - 1.0 / len(y)
    twin = KernelRidge(alpha=alpha, kernel="precomputed").fit(H @ gram @ H, y - y.mean())
    cross = (model._kernel()(new, X) - gram.mean(axis=0)) @ H
    assert_allclose(model.decision_function(new), twin.predict(cross) + y.mean(), rtol=1e-10)


@pytest.mark.parametrize("m", [3, 5, 40])
@pytest.mark.parametrize("ridge", ["per-example", "fixed"])
def test_primal_and_dual_agree(m: int, ridge: str) -> None:
    X, y, new = sample(m)
    y[0], y[1] = 1.0, 5.0
    primal = MPRank(5.0, solver="primal", ridge=ridge).fit(X, y)
    dual = MPRank(5.0, solver="dual", ridge=ridge).fit(X, y)
    assert_allclose(primal.decision_function(new), dual.decision_function(new), rtol=1e-9)
    assert_allclose(primal.objective_, dual.objective_, rtol=1e-9)
    assert_allclose(primal.coef_, dual.coef_, atol=1e-12)


def test_auto_takes_the_smaller_system() -> None:
    assert MPRank().fit(*sample(30, 4)[:2]).dual_coef_ is None
    assert MPRank().fit(*sample(4, 30)[:2]).dual_coef_ is not None


@pytest.mark.parametrize("options", KERNELS)
def test_scores_sit_on_the_rating_scale(options: dict[str, Any]) -> None:
    X, y, _ = sample()
    assert_allclose(MPRank(**options).fit(X, y).decision_function(X).mean(), y.mean())
    offset = np.linspace(-1, 1, len(y))
    shifted = MPRank(**options).fit(X, y, offset=offset).decision_function(X, offset=offset)
    assert_allclose(shifted.mean(), y.mean())


@pytest.mark.parametrize("options", KERNELS)
def test_shifting_the_ratings_shifts_the_scores(options: dict[str, Any]) -> None:
    X, y, new = sample()
    plain, shifted = MPRank(**options).fit(X, y), MPRank(**options).fit(X, y + 10.0)
    assert_allclose(shifted.decision_function(new), plain.decision_function(new) + 10.0, rtol=1e-10)


@pytest.mark.parametrize("options", KERNELS)
def test_the_order_of_examples_does_not_matter(options: dict[str, Any]) -> None:
    X, y, new = sample()
    order = np.random.default_rng(1).permutation(len(y))
    assert_allclose(
        MPRank(**options).fit(X, y).decision_function(new),
        MPRank(**options).fit(X[order], y[order]).decision_function(new),
        rtol=1e-9,
    )


def test_doubling_every_example_changes_nothing() -> None:
    # the cost is a mean over pairs: C keeps its meaning for users of different size
    X, y, new = sample()
    twice = MPRank(2.0).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert_allclose(twice.decision_function(new), MPRank(2.0).fit(X, y).decision_function(new))


def test_an_offset_is_learned_around() -> None:
    X, y, new = sample()
    offset, new_offset = np.arange(len(y)) / 9.0, np.arange(len(new)) / 5.0
    with_offset = MPRank().fit(X, y, offset=offset).decision_function(new, offset=new_offset)
    by_hand = MPRank().fit(X, y - offset).decision_function(new) + new_offset
    assert_allclose(with_offset, by_hand, rtol=1e-12)


@pytest.mark.parametrize("options", KERNELS)
@pytest.mark.parametrize("y", [[3.0], [4.0, 4.0, 4.0]])
def test_nothing_to_tell_apart_gives_the_constant(y: list[float], options: dict[str, Any]) -> None:
    X = np.arange(3.0 * len(y)).reshape(len(y), 3)
    model = MPRank(**options).fit(X, y)
    assert_allclose(model.decision_function(X + 1.0), y[0], atol=1e-12)


@pytest.mark.parametrize("options", KERNELS)
def test_exports_and_reads_back_to_the_bit(options: dict[str, Any]) -> None:
    X, y, new = sample()
    model = MPRank(2.5, **options).fit(X, y)
    params = model.to_params()
    assert all(np.ndim(value) <= 1 for value in params.values())
    again = MPRank.from_params(params)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.decision_function(new), model.decision_function(new))


def test_inputs_stay_as_they_were() -> None:
    X, y, _ = sample()
    before = X.copy(), y.copy()
    for solver in ("primal", "dual"):
        MPRank(solver=solver).fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_scikit_learn_conventions() -> None:
    model = MPRank(2.0, kernel="rbf")
    assert model.get_params()["C"] == 2.0
    assert model.set_params(C=3.0).C == 3.0
    with pytest.raises(InvalidParameterError, match="no parameter 'c'"):
        model.set_params(c=1)
    with pytest.raises(NotFittedError, match="call fit first"):
        MPRank().decision_function([[1.0]])
    with pytest.raises(NotFittedError):
        MPRank().to_params()


@pytest.mark.parametrize("C", [0.0, -1.0, float("nan"), float("inf"), "1", True, None])
def test_a_bad_constant_is_named(C: Any) -> None:
    with pytest.raises(InvalidParameterError, match="C=.* a number above 0"):
        MPRank(C).fit([[1.0], [2.0]], [1, 2])


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([[1.0], [np.nan]], [1, 2], "X holds NaN"),
        ([[1.0], [2.0]], [1, np.inf], "y holds NaN or infinity"),
        ([[1.0], [2.0]], [1, 2, 3], "vector of 2 numbers"),
        ([1.0, 2.0], [1, 2], "two dimensions"),
        (np.empty((0, 2)), [], "no examples"),
    ],
)
def test_bad_data_is_named(X: Any, y: Any, words: str) -> None:
    with pytest.raises(InvalidDataError, match=words):
        MPRank().fit(X, y)


def test_scoring_another_width_is_an_error() -> None:
    X, y, _ = sample()
    with pytest.raises(InvalidDataError, match="3 features, but it is expecting 5"):
        MPRank().fit(X, y).decision_function(np.ones((2, 3)))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_an_overflow_is_an_error_and_never_a_silent_nan() -> None:
    X = np.array([[1e200, 1.0], [-1e200, 2.0], [3e200, 1.0]])
    with pytest.raises(NumericFailureError):
        MPRank(solver="primal").fit(X, [1.0, 2.0, 3.0])
    with pytest.raises(NumericFailureError):
        MPRank(solver="dual").fit(X, [1.0, 2.0, 3.0])


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 12), st.integers(1, 6), st.floats(1e-3, 1e3), st.integers(0, 10_000),
    st.sampled_from(KERNELS),
)  # fmt: skip
def test_no_small_step_improves_the_objective(
    m: int, d: int, C: float, seed: int, options: dict[str, Any]
) -> None:
    """The minimum of F over the span of the data, written with pairs, is where fit says."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(m, d)), rng.integers(1, 6, m).astype(float)
    model = MPRank(C, solver="auto" if options["kernel"] != "linear" else "dual", **options)
    model.fit(X, y)
    gram = model._kernel()(X, X)

    def objective(alpha: np.ndarray) -> float:
        h = gram @ alpha
        residuals = h - y
        pairs = (residuals[:, None] - residuals[None, :]) ** 2
        return float(alpha @ gram @ alpha + C / m**2 * pairs.sum())

    least = objective(model.dual_coef_)
    assert_allclose(least, model.objective_, rtol=1e-6, atol=1e-9)
    for _ in range(5):
        step = rng.normal(size=m) * 1e-2
        assert objective(model.dual_coef_ + step) >= least - 1e-9 * max(1.0, least)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "linear+rbf"])
@pytest.mark.parametrize("m", [3, 40])
def test_residuals_of_the_examples_follow_from_the_solution(kernel: str, m: int) -> None:
    X, y, _ = sample(m=m)
    offset = np.linspace(-1.0, 1.0, m)
    model = MPRank(2.0, kernel=kernel, growth=0.1).fit(X, y, offset=offset)
    residuals = model.training_residuals()
    assert residuals is not None
    assert_allclose(y + residuals, model.decision_function(X, offset), atol=1e-10)
    # what does not solve the problem exactly has none
    assert model.partial_fit(X, y, offset=offset).training_residuals() is None
    assert MPRank(2.0, solver="online").fit(X, y).training_residuals() is None


@pytest.mark.parametrize("options", KERNELS)
def test_a_failed_fit_leaves_the_model_as_it_was(options: dict[str, Any]) -> None:
    X, y, new = sample()
    options = {**options, "gamma": None}
    model = MPRank(**options).fit(X, y)
    before, error = model.decision_function(new), model.leave_pair_out(X, y)
    for features, ratings in ((X * 1e200, y), (X, np.full(len(y), np.nan))):
        with pytest.raises((InvalidDataError, NumericFailureError)):
            model.fit(features, ratings)
        np.testing.assert_array_equal(model.decision_function(new), before)
        assert model.leave_pair_out(X, y) == error


@pytest.mark.parametrize("options", KERNELS)
def test_the_callers_arrays_may_change_after_fit(options: dict[str, Any]) -> None:
    X, y, new = sample()
    model = MPRank(**options).fit(X, y)
    before = model.decision_function(new)
    X *= -2.0
    y[:] = 1.0
    np.testing.assert_array_equal(model.decision_function(new), before)


@pytest.mark.parametrize("options", KERNELS)
@pytest.mark.parametrize("solver", ["auto", "online"])
def test_the_memory_layout_changes_no_bit(options: dict[str, Any], solver: str) -> None:
    X, y, new = sample(31, 7)
    new = X[:5] + 0.1
    rows = MPRank(solver=solver, **options).fit(X, y)
    columns = MPRank(solver=solver, **options).fit(np.asfortranarray(X), y)
    np.testing.assert_array_equal(rows.decision_function(new), columns.decision_function(new))


@pytest.mark.parametrize("scale", [1.0, 1.0 / 30.0])
def test_an_indefinite_kernel_is_refused_by_every_way_of_solving(scale: float) -> None:
    gram, y = scale * np.diag([-30.0, 30.0, 30.0, 30.0]), [1.0, 2.0, 4.0, 5.0]
    for C in (0.1, 10.0):
        for solver in ("auto", "dual", "online"):
            with pytest.raises(InvalidDataError, match="positive semi-definite"):
                MPRank(C, kernel="precomputed", solver=solver).fit(gram, y)
        with pytest.raises(InvalidDataError, match="positive semi-definite"):
            MPRank.path(gram, y, [C], kernel="precomputed")


def test_features_without_columns_or_spread_give_the_constant_without_a_warning() -> None:
    for X in (np.empty((3, 0)), np.full((3, 2), 1e-200) * [[1.0], [2.0], [4.0]]):
        for kernel in ("linear", "rbf", "poly"):
            model = MPRank(kernel=kernel).fit(X, [1.0, 2.0, 6.0])
            assert_allclose(model.decision_function(X), 3.0)
