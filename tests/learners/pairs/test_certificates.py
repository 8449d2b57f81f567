"""What is certified, beside solvers that share nothing with ours, at scales that lose digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.linear_model import Ridge

from spark_rank.learners import MPRank, RankSVM, SVRank
from spark_rank.learners.errors import NumericFailureError

Long = np.longdouble
SCALES = [1e-8, 1e-4, 1.0, 1e4, 1e8]


def problem(seed: int, m: int = 24, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.clip(np.round(3.0 + X[:, 0] + rng.normal(size=m)), 1.0, 5.0)


def exact_objective(model: Any, X: np.ndarray, y: np.ndarray, coef: np.ndarray) -> float:
    """Sum over all pairs in extended precision, at the weights `coef`."""
    wide = X.astype(Long) - X.astype(Long).mean(axis=0)
    weights, targets = coef.astype(Long), y.astype(Long)
    scores, norm = wide @ weights, weights @ weights
    if isinstance(model, RankSVM):
        better = targets[:, None] > targets
        excess = np.maximum(1 - (scores[:, None] - scores), 0)[better].sum()
        return float(norm / 2 + Long(model.C) * excess)
    residuals = scores - targets
    excess = np.maximum(np.abs(residuals[:, None] - residuals) - Long(model.epsilon), 0)
    return float(norm + Long(model.C) / len(y) ** 2 * (excess**model.power).sum())


def independent_weights(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return w by SciPy's L-BFGS on explicit pairs, whose hinges are rounded less and less.

    The features are in units of their own spread, as a solver with absolute tolerances needs.
    """
    unit = float(X.std())
    Z, C = (X - X.mean(axis=0)) / unit, model.C * unit**2
    i, j = np.nonzero(y[:, None] > y) if isinstance(model, RankSVM) else np.triu_indices(len(y), 1)
    gaps, steps = Z[i] - Z[j], y[i] - y[j]

    def smooth(weights: np.ndarray, width: float) -> tuple[float, np.ndarray]:
        if isinstance(model, RankSVM):
            excess, slope, scale, half = 1.0 - gaps @ weights, -1.0, C, 0.5
        else:
            away = gaps @ weights - steps
            excess, slope = np.abs(away) - model.epsilon, np.sign(away)
            scale, half = 2.0 * C / len(y) ** 2, 1.0
        if getattr(model, "power", 1) == 2:
            costs, pulls = np.maximum(excess, 0.0) ** 2, 2.0 * np.maximum(excess, 0.0)
        else:  # log(1 + e^t): above the hinge by at most width · ln 2
            costs = width * np.logaddexp(0.0, excess / width)
            pulls = np.exp(-np.logaddexp(0.0, -excess / width))
        gradient = 2.0 * half * weights + scale * (pulls * slope) @ gaps
        return half * weights @ weights + scale * costs.sum(), gradient

    weights = np.zeros(X.shape[1])
    for width in 10.0 ** -np.arange(1.0, 7.0):
        found = minimize(smooth, weights, (width,), jac=True, method="L-BFGS-B",
                         options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-12})  # fmt: skip
        weights = found.x
    return np.asarray(weights / unit)


MODELS: dict[str, Any] = {
    "SVRank n=1": SVRank,
    "SVRank n=2": lambda C: SVRank(C, power=2),
    "RankSVM": lambda C: RankSVM(C / 300.0),
}


@pytest.mark.parametrize("shift", [0.0, 1e7, 1e8])
@pytest.mark.parametrize("matched", [True, False])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_gap_holds_beside_an_independent_solver(
    make: Any, scale: float, matched: bool, shift: float
) -> None:
    """With C as it is, scale 1e8 leaves no weight to the norm, and scale 1e-8 all of it."""
    X, y = problem(1)
    X = scale * (X + shift) if matched else scale * X + shift
    model = make(30.0 / scale**2 if matched else 30.0).fit(X, y)
    assert_allclose(exact_objective(model, X, y, model.coef_), model.objective_, rtol=1e-6)
    other = exact_objective(model, X, y, independent_weights(model, X, y))
    assert other >= model.objective_ * (1.0 - model.duality_gap_) * (1.0 - 1e-9)
    assert model.converged_
    assert model.objective_ <= other * (1.0 + 2e-4)


@pytest.mark.parametrize("seed", range(60))
def test_near_interpolation_nothing_false_is_certified(seed: int) -> None:
    """Objectives are small there beside what cancels in them, at any scale and trade-off."""
    rng = np.random.default_rng(seed)
    m, d = rng.integers(4, 40), rng.integers(1, 60)
    scale, power = 10.0 ** rng.uniform(-8, 8), int(rng.choice([1, 2]))
    X, y = scale * rng.normal(size=(m, d)), rng.integers(1, 6, m).astype(float)
    model = SVRank(
        10.0 ** rng.uniform(4, 16) / scale**2, epsilon=float(rng.choice([0.0, 0.25])), power=power
    )
    try:
        model.fit(X, y)
    except NumericFailureError as failure:
        assert "lower C" in str(failure)  # noqa: PT017 - no failure is as good
        return
    slack = model.duality_gap_ + 1e-9
    exact = exact_objective(model, X, y, model.coef_)
    assert_allclose(exact, model.objective_, rtol=slack)
    left, lengths, right = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    kept = lengths > 1e-9 * lengths[0]
    within = (left.T @ (y - y.mean()))[kept]
    for ridge in [0.0, *(10.0 ** np.arange(-12.0, 1.0) * lengths[0] ** 2)]:
        for shrunk in (1.0, 0.97, 0.9):
            shares = shrunk * within * lengths[kept] / (lengths[kept] ** 2 + ridge)
            other = exact_objective(model, X, y, right[kept].T @ shares)
            assert other >= model.objective_ * (1.0 - slack)


@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e6])
@pytest.mark.parametrize("solver", ["auto", "dual"])
def test_mprank_is_a_ridge_regression_at_any_scale(
    solver: str, C: float, scale: float, d: int
) -> None:
    X, y = problem(2, d=d)
    new = np.random.default_rng(3).normal(size=(5, d))
    model = MPRank(C, solver=solver).fit(scale * X, y)
    twin = Ridge(alpha=len(y) / (2.0 * C * scale**2), solver="svd").fit(X, y)
    assert_allclose(model.decision_function(scale * new), twin.predict(new), atol=1e-6)


@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("solver", ["auto", "dual"])
@pytest.mark.parametrize("alike", [False, True])
def test_leaving_pairs_out_under_a_faint_ridge_is_refitting(
    alike: bool, solver: str, d: int
) -> None:
    """A ridge of 1e-6 beside kernel values of 1e16, which it is added to."""
    X, y = problem(4, m=12, d=d)
    X[:, 2] = X[:, 1] if alike else X[:, 2]
    C, scale = 6e6, 1e8
    costs = []
    for i in range(len(y)):
        for j in range(i):
            rest = np.delete(np.arange(len(y)), [i, j])
            twin = Ridge(alpha=len(y) / (2.0 * C * scale**2), solver="svd").fit(X[rest], y[rest])
            high, low = twin.predict(X[[i, j]])
            costs.append(((high - low) - (y[i] - y[j])) ** 2)
    model = MPRank(C, solver=solver).fit(scale * X, y)
    assert_allclose(model.leave_pair_out(scale * X, y), np.mean(costs), rtol=1e-5)
    path = MPRank.path(scale * X, y, [C], solver=solver)
    assert_allclose(path.leave_pair_out, np.mean(costs), rtol=1e-5)


def test_a_ridge_below_the_rounding_of_a_kernel_is_an_error() -> None:
    X, y = problem(5)
    far = {"kernel": "poly", "gamma": 1.0, "degree": 2}
    with pytest.raises(NumericFailureError, match="lower C"):
        MPRank(1.0, **far).fit(X + 1e8, y)
    with pytest.raises(NumericFailureError, match="lower C"):
        MPRank(1.0, solver="online", **far).fit(X + 1e8, y)
    with pytest.raises(NumericFailureError, match="lower C"):
        MPRank(1.0, **far).partial_fit(X + 1e8, y)
    with pytest.raises(NumericFailureError, match="lower C"):
        MPRank.path(X + 1e8, y, [1.0], **far)
    gram = 1e16 * (X @ X.T)
    with pytest.raises(NumericFailureError, match="lower C"):
        MPRank(1e6, kernel="precomputed").fit(gram, y).leave_pair_out(gram, y)


@pytest.mark.parametrize("learner", [SVRank, RankSVM])
def test_a_polynomial_that_is_far_away_is_certified_by_none(learner: Any) -> None:
    X, y = problem(6)
    model = learner(1.0, kernel="poly", gamma=1.0, degree=2)
    try:
        model.fit(X + 1e8, y)
    except NumericFailureError as failure:
        assert "lower C" in str(failure)  # noqa: PT017 - no failure is as good
    else:
        assert not model.converged_


@pytest.mark.parametrize("scale", [1e6, 1e9, 1e12])
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_great_features_are_learned_or_refused(make: Any, scale: float) -> None:
    """More features than items: nothing costs, and only the norm is left, lost beside them."""
    X = scale * np.random.default_rng(1).normal(size=(4, 6))
    model, y = make(1.0), np.array([1.0, 2.0, 3.0, 4.0])
    try:
        model.fit(X, y)
    except NumericFailureError as failure:
        assert "lower C" in str(failure)  # noqa: PT017 - no failure is as good
        return
    exact = exact_objective(model, X, y, model.coef_)
    assert_allclose(exact, model.objective_, rtol=model.duality_gap_ + 1e-9)
    assert model.duality_gap_ <= 0.9


def test_the_ends_of_the_trade_offs_are_a_solution_or_a_named_error() -> None:
    X, y = problem(7)
    shortest = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean())[0]
    assert_allclose(MPRank(1.7e308).fit(X, y).coef_, shortest, rtol=1e-9)
    with pytest.raises(NumericFailureError, match="lower C"):
        MPRank(1.7e308).fit(X, 1e3 * y)  # the objective is no number
    with pytest.raises(NumericFailureError, match="C=5e-324 .* take one nearer 1"):
        MPRank(5e-324).fit(X, y)


def test_leaving_pairs_out_is_of_the_model_that_was_fitted() -> None:
    X, y = problem(8)
    model = MPRank(1.0, kernel="poly", degree=2, gamma=0.3).fit(X, y)
    before = model.leave_pair_out(X, y)
    model.set_params(C=50.0, degree=3, ridge="fixed", growth=1.0, kernel="linear")
    assert model.leave_pair_out(X, y) == before
