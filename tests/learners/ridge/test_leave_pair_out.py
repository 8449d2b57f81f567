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
    NumericFailureError,
)
from spark_rank.learners.ridge import leave_pair_out

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
    assert_allclose(model.leave_pair_out(X, y), refitted(X, y, m / 5.0, options), rtol=1e-10)
    fixed = MPRank(2.5, ridge="fixed", **options).fit(X, y)
    assert_allclose(fixed.leave_pair_out(X, y), refitted(X, y, 1 / 2.5, options), rtol=1e-10)


def test_identical_rows_are_no_problem() -> None:
    X, y, _ = sample(8)
    X[1] = X[0]
    X[2] = X[0]
    options: dict[str, Any] = {"kernel": "rbf", "gamma": 0.3}
    model = MPRank(2.0, **options).fit(X, y)
    assert_allclose(model.leave_pair_out(X, y), refitted(X, y, 2.0, options), rtol=1e-10)


def test_an_offset_is_left_out_of_it() -> None:
    X, y, _ = sample()
    offset = np.linspace(-1, 1, len(y))
    with_offset = MPRank(2.0).fit(X, y, offset=offset).leave_pair_out(X, y, offset)
    without = MPRank(2.0).fit(X, y - offset).leave_pair_out(X, y - offset)
    assert_allclose(with_offset, without, rtol=1e-12)


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
        assert_allclose(path.leave_pair_out[position], single.leave_pair_out(X, y), rtol=1e-8)
        assert_allclose(model.leave_pair_out(X, y), single.leave_pair_out(X, y), rtol=1e-12)
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
    assert_allclose(given.leave_pair_out(kernel(X, X), y), direct.leave_pair_out(X, y))
    again = MPRank.from_params(given.to_params())
    np.testing.assert_array_equal(
        again.decision_function(kernel(new, X)), given.decision_function(kernel(new, X))
    )
    with pytest.raises(InvalidDataError, match="7 features, but it is expecting 13"):
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
        MPRank().fit([[1.0], [2.0]], [1, 2]).leave_pair_out([[1.0], [2.0]], [1, 2])
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
        MPRank.from_params(MPRank().fit(X, y).to_params()).leave_pair_out(X, y)


def nearly_copied(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X[1::2] = X[: len(X) - 1 : 2] + 1e-6 * X[1::2]
    return X


NASTY: dict[str, tuple[Any, dict[str, Any]]] = {
    "Gaussian": (lambda X: X, {"kernel": "rbf", "gamma": 0.05}),
    "narrow": (lambda X: X, {"kernel": "rbf", "gamma": 3.0}),
    "wide": (lambda X: X, {"kernel": "rbf", "gamma": 1e-4}),
    "identical items": (lambda X: np.repeat(X[::2], 2, axis=0), {"kernel": "rbf", "gamma": 0.05}),
    "nearly identical items": (nearly_copied, {"kernel": "rbf", "gamma": 0.05}),
    "linear": (lambda X: X, {"kernel": "linear"}),
    "linear, dependent": (lambda X: X @ X[:20].T, {"kernel": "linear"}),
    "linear, dependent, dual": (lambda X: X @ X[:20].T, {"kernel": "linear", "solver": "dual"}),
    "linear, large numbers": (lambda X: 1e3 * X + 1e5, {"kernel": "linear"}),
}


def in_both_precisions(
    monkeypatch: pytest.MonkeyPatch, X: np.ndarray, y: np.ndarray, Cs: Any, options: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors of a path as it is, and with single precision switched off."""
    as_it_is = MPRank.path(X, y, Cs, **options).leave_pair_out
    with monkeypatch.context() as patch:
        patch.setattr(leave_pair_out, "_SINGLE_FROM", len(y) + 1)
        return as_it_is, MPRank.path(X, y, Cs, **options).leave_pair_out


@pytest.mark.parametrize("name", NASTY)
def test_single_precision_keeps_the_digits_of_double(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, options = NASTY[name]
    X, y, _ = sample(140, 8)
    single, double = in_both_precisions(monkeypatch, change(X), y, np.logspace(-6, 12, 10), options)
    assert (single != double).any(), "single precision was not used"
    assert_allclose(single, double, rtol=1e-6)


@pytest.mark.parametrize("d", [69, 130, 137, 138, 139, 140, 300])
def test_hardly_more_examples_than_features(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With m − 1 free directions or nearly so, I − A vanishes or nearly so as C grows."""
    X, y, _ = sample(140, d)
    single, double = in_both_precisions(monkeypatch, X, y, np.logspace(-6, 9, 6), {})
    assert_allclose(single, double, rtol=1e-6)


def test_ratings_that_hide_in_the_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rating far from all others, and ratings that the features explain to the last digit."""
    X, _, _ = sample(140, 8)
    outlier = np.zeros(140)
    outlier[3] = 1e6
    for y in (outlier, X @ np.arange(8.0)):
        for options in ({"kernel": "rbf", "gamma": 0.05}, {"kernel": "linear"}):
            Cs = np.logspace(-6, 6, 7)
            assert_allclose(*in_both_precisions(monkeypatch, X, y, Cs, options), rtol=1e-6)


@pytest.mark.parametrize("options", KERNELS)
def test_the_path_in_single_precision_equals_refitting(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leave_pair_out, "_SINGLE_FROM", 3)
    for m in (3, 4, 13):
        X, y, _ = sample(m)
        y[0] = y[1] + 1.0
        X[2] = X[1]
        Cs = [1e-6, 1e-2, 2.5, 1e3]
        path = MPRank.path(X, y, Cs, ridge="fixed", **options)
        expected = [refitted(X, y, 1 / C, options) for C in Cs]
        assert_allclose(path.leave_pair_out, expected, rtol=1e-5)


def test_the_share_kept_of_every_direction() -> None:
    """I − A built entry by entry from a basis, its shares and the rest."""
    rng = np.random.default_rng(4)
    directions = np.linalg.qr(rng.normal(size=(90, 90)))[0]
    basis, others = directions[:, :50], directions[:, 50:]
    rest = np.asfortranarray(others @ others.T)
    shares, e = 10.0 ** rng.uniform(-8, 0, 50), rng.normal(size=90)
    columns = np.stack([shares, np.ones(50)], axis=1)
    found = leave_pair_out.errors_from_basis(basis, columns, rest, np.stack([e, 2.0 * e]))
    for error, share, residuals in zip(found, columns.T, (e, 2.0 * e), strict=True):
        E = (basis * share) @ basis.T + rest
        expected = left_out_pairs(E, residuals)
        assert_allclose(error, expected, rtol=1e-6)
        assert_allclose(leave_pair_out.error(E, residuals), expected, rtol=1e-10)


def left_out_pairs(E: np.ndarray, e: np.ndarray) -> float:
    """Return the mean over ordered pairs of what a 2×2 system says of each."""
    total = 0.0
    for i, j in combinations(range(len(e)), 2):
        left_out = np.linalg.solve(E[np.ix_([i, j], [i, j])], e[[i, j]])
        total += 2.0 * (left_out[1] - left_out[0]) ** 2
    return total / (len(e) * (len(e) - 1))


def test_a_pair_without_an_error_is_reported() -> None:
    """Items of which a basis has too little: none, or so little that every pair is singular."""
    nothing = np.empty((0, 0), order="F")
    for basis in (np.eye(3)[:, :2].copy(), np.ones((3, 1)), np.ones((100, 1))):
        m, n = basis.shape
        with pytest.raises(NumericFailureError, match="lower C"):
            leave_pair_out.errors_from_basis(
                basis, np.ones((n, 1)), nothing, np.arange(float(m))[None, :]
            )


def test_its_mean_is_the_error_of_models_from_two_examples_less() -> None:
    """Proposition 1: over samples of m, the error is that of learning from m − 2."""
    rng = np.random.default_rng(12)

    def draw(m: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(size=(m, 2))
        return X, X[:, 0] + rng.normal(size=m)

    left_out, true = [], []
    for _ in range(600):
        X, y = draw(6)
        left_out.append(MPRank(1.0, ridge="fixed").fit(X, y).leave_pair_out(X, y))
        model = MPRank(1.0, ridge="fixed").fit(*draw(4))
        X, y = draw(20)
        high, low = model.decision_function(X).reshape(2, 10)
        true.append(np.mean(((high - low) - (y[:10] - y[10:])) ** 2))
    spread = np.hypot(np.std(left_out), np.std(true)) / np.sqrt(600)
    assert abs(np.mean(left_out) - np.mean(true)) < 4.0 * spread
    assert spread < 0.1 * np.mean(true)
