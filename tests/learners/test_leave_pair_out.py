"""Leave-pair-out and the path over C against refitting, one by one."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spark_rank.learners import MPRank
from spark_rank.learners.errors import (
    InvalidDataError,
    InvalidParameterError,
    NotFittedError,
)

KERNELS: list[dict[str, Any]] = [
    {"kernel": "linear"},
    {"kernel": "linear", "solver": "dual"},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "poly", "gamma": 0.5},
    {"kernel": "linear+rbf", "gamma": 0.7, "rbf_weight": 0.4},
]


def sample(m: int = 13, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) + 0.7
    return X, rng.integers(1, 6, size=m).astype(float), rng.normal(size=(7, d))


def refitted(X: np.ndarray, y: np.ndarray, ridge: float, options: dict[str, Any]) -> float:
    """Eq. 17 as printed: the mean over ordered pairs, each left out of a training of its own."""
    total = 0.0
    for i, j in combinations(range(len(y)), 2):
        keep = np.delete(np.arange(len(y)), [i, j])
        model = MPRank(1.0 / ridge, ridge="fixed", **options).fit(X[keep], y[keep])
        h = model.decision_function(X[[i, j]])
        total += 2.0 * ((h[1] - h[0]) - (y[j] - y[i])) ** 2
    return total / (len(y) * (len(y) - 1))


@pytest.mark.parametrize("options", KERNELS)
@pytest.mark.parametrize("m", [3, 4, 13])
def test_equals_refitting(options: dict[str, Any], m: int) -> None:
    X, y, _ = sample(m)
    y[0] = y[1] + 1.0
    model = MPRank(2.5, **options).fit(X, y)
    assert_allclose(model.leave_pair_out(), refitted(X, y, m / 5.0, options), rtol=1e-10)
    fixed = MPRank(2.5, ridge="fixed", **options).fit(X, y)
    assert_allclose(fixed.leave_pair_out(), refitted(X, y, 1 / 2.5, options), rtol=1e-10)


def test_identical_rows_are_no_problem() -> None:
    X, y, _ = sample(8)
    X[1] = X[0]
    X[2] = X[0]
    options: dict[str, Any] = {"kernel": "rbf", "gamma": 0.3}
    model = MPRank(2.0, **options).fit(X, y)
    assert_allclose(model.leave_pair_out(), refitted(X, y, 2.0, options), rtol=1e-10)


def test_an_offset_is_left_out_of_it() -> None:
    X, y, _ = sample()
    offset = np.linspace(-1, 1, len(y))
    with_offset = MPRank(2.0).fit(X, y, offset=offset).leave_pair_out()
    assert_allclose(with_offset, MPRank(2.0).fit(X, y - offset).leave_pair_out(), rtol=1e-12)


@pytest.mark.parametrize("options", KERNELS)
@pytest.mark.parametrize("ridge", ["per-example", "fixed"])
def test_the_path_is_a_fit_for_every_constant(options: dict[str, Any], ridge: str) -> None:
    X, y, new = sample()
    Cs = [0.01, 0.3, 5.0, 400.0]
    path = MPRank.path(X, y, Cs, ridge=ridge, **options)
    for position, C in enumerate(Cs):
        single = MPRank(C, ridge=ridge, **options).fit(X, y)
        model = path.models[position]
        assert model.C == path.Cs[position] == C
        assert_allclose(model.decision_function(new), single.decision_function(new), rtol=1e-8)
        assert_allclose(path.objectives[position], single.objective_, rtol=1e-8)
        assert_allclose(path.leave_pair_out[position], single.leave_pair_out(), rtol=1e-8)
        assert_allclose(model.leave_pair_out(), single.leave_pair_out(), rtol=1e-12)
    assert path.best is path.models[int(np.argmin(path.leave_pair_out))]


def test_the_path_with_more_features_than_examples() -> None:
    X, y, new = sample(6, 30)
    path = MPRank.path(X, y, [0.1, 10.0])
    for model in path.models:
        single = MPRank(model.C).fit(X, y)
        assert_allclose(model.decision_function(new[:, :1] * np.ones(30)),
                        single.decision_function(new[:, :1] * np.ones(30)), rtol=1e-8)  # fmt: skip
        assert_allclose(model.coef_, single.coef_, atol=1e-10)


def test_the_path_with_an_offset() -> None:
    X, y, new = sample()
    offset = np.linspace(-1, 1, len(y))
    model = MPRank.path(X, y, [2.0], offset=offset).best
    single = MPRank(2.0).fit(X, y, offset=offset)
    assert_allclose(model.decision_function(new), single.decision_function(new), rtol=1e-9)


def test_it_chooses_a_sensible_constant() -> None:
    """Where the truth is linear with noise, the chosen C must not be at either end."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30))
    y = X @ rng.normal(size=30) * 0.3 + rng.normal(0, 1.5, 60)
    test = rng.normal(size=(2000, 30))
    path = MPRank.path(X, y, np.logspace(-3, 5, 17))
    assert 1e-3 < path.best.C < 1e5
    assert path.leave_pair_out.min() < 0.9 * path.leave_pair_out[[0, -1]].min()
    assert np.isfinite(path.best.decision_function(test)).all()


def test_a_precomputed_kernel_is_that_kernel() -> None:
    X, y, new = sample()
    direct = MPRank(2.0, kernel="rbf", gamma=0.3).fit(X, y)
    kernel = direct._kernel()
    given = MPRank(2.0, kernel="precomputed").fit(kernel(X, X), y)
    assert_allclose(given.decision_function(kernel(new, X)), direct.decision_function(new))
    assert_allclose(given.leave_pair_out(), direct.leave_pair_out())
    again = MPRank.from_params(given.to_params())
    np.testing.assert_array_equal(
        again.decision_function(kernel(new, X)), given.decision_function(kernel(new, X))
    )
    with pytest.raises(InvalidDataError, match="7 features, the learner was fitted on 13"):
        given.decision_function(np.ones((2, 7)))
    with pytest.raises(InvalidDataError, match="must be square"):
        MPRank(kernel="precomputed").fit(X, y)
    with pytest.raises(InvalidDataError, match="not symmetric"):
        MPRank(kernel="precomputed").fit([[1.0, 0.5], [0.2, 1.0]], [1.0, 2.0])


def test_predictions_stay_on_the_scale() -> None:
    X, y, new = sample()
    model = MPRank(100.0).fit(X, y)
    scores = model.decision_function(10 * new)
    assert scores.min() < y.min()
    assert_allclose(model.predict(10 * new), np.clip(scores, y.min(), y.max()))


def test_what_cannot_be_done_is_named() -> None:
    with pytest.raises(InvalidDataError, match="at least three"):
        MPRank().fit([[1.0], [2.0]], [1, 2]).leave_pair_out()
    with pytest.raises(InvalidDataError, match="at least three"):
        MPRank.path([[1.0], [2.0]], [1, 2], [1.0])
    with pytest.raises(InvalidParameterError, match="Cs is empty"):
        MPRank.path(*sample()[:2], [])
    with pytest.raises(InvalidParameterError, match="C=0"):
        MPRank.path(*sample()[:2], [1.0, 0])
    with pytest.raises(InvalidParameterError, match="use 'dual'"):
        MPRank(kernel="rbf", solver="primal").fit(*sample()[:2])
    X, y, _ = sample()
    with pytest.raises(NotFittedError):
        MPRank.from_params(MPRank().fit(X, y).to_params()).leave_pair_out()
