"""SVRank beside general solvers on explicit pairs, the closed form of MPRank, and identities."""

from __future__ import annotations

import contextlib
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import check_grad, minimize
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVR, LinearSVR

from spark_rank.learners.errors import (
    InvalidDataError,
    InvalidParameterError,
    NotFittedError,
    NumericFailureError,
)
from spark_rank.learners.mprank import MPRank
from spark_rank.learners.pairs import machine
from spark_rank.learners.pairs.losses import InsensitiveLoss
from spark_rank.learners.pairs.smooth_newton import NewtonSolution, minimise_by_newton
from spark_rank.learners.svrank import SVRank

Floats = NDArray[np.float64]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def ratings(rng: np.random.Generator, m: int, d: int) -> tuple[Floats, Floats]:
    X = rng.normal(size=(m, d))
    y = np.clip(np.round(3 + X @ rng.normal(size=d) + 0.5 * rng.normal(size=m)), 1, 5)
    return X, y


def explicit_objective(residuals: Floats, norm: float, learner: SVRank) -> float:
    """Eq. 9 over the matrix of all pairs, with the learner's C, epsilon and power."""
    differences = np.abs(residuals[None, :] - residuals[:, None])
    costs = np.maximum(differences - learner.epsilon, 0.0) ** learner.power
    return float(norm + learner.C / len(residuals) ** 2 * costs.sum())


def pairs_of(X: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Differences of features and of ratings, once for every unordered pair."""
    first, second = np.triu_indices(len(y), 1)
    return X[first] - X[second], y[first] - y[second]


@pytest.mark.parametrize("C", [0.5, 10.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("power", [1, 2])
def test_the_papers_programme(
    C: float, epsilon: float, power: int, rng: np.random.Generator
) -> None:
    """The quadratic programme of section 2.4, slack by slack, by sequential least squares."""
    X, y = ratings(rng, 8, 2)
    differences, targets = pairs_of(X, y)
    n = len(targets)

    def objective(v: Floats) -> float:
        # every unordered pair has a slack and stands twice in the double sum
        return float(v[:2] @ v[:2] + 2.0 * C / 64 * (v[2:] ** power).sum())

    def margins(v: Floats) -> Floats:
        errors = differences @ v[:2] - targets
        return np.concatenate([epsilon + v[2:] - errors, epsilon + v[2:] + errors])

    found = minimize(
        objective,
        np.concatenate([np.zeros(2), np.abs(targets)]),
        method="SLSQP",
        bounds=[(None, None)] * 2 + [(0.0, None)] * n,
        constraints={"type": "ineq", "fun": margins},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.success, found.message
    learner = SVRank(C, epsilon=epsilon, power=power, tol=1e-9).fit(X, y)
    assert learner.converged_
    assert_allclose(learner.objective_, found.fun, rtol=1e-7)
    assert_allclose(learner.coef_, found.x[:2], atol=1e-3)


@pytest.mark.parametrize("power", [1, 2])
def test_support_vector_regression_on_pair_differences(
    power: int, rng: np.random.Generator
) -> None:
    X, y = ratings(rng, 40, 3)
    C, epsilon = 5.0, 0.25
    differences, targets = pairs_of(X, y)
    loss = "epsilon_insensitive" if power == 1 else "squared_epsilon_insensitive"
    # half of eq. 9 is ½‖w‖² + C/m² Σ over unordered pairs
    peer = LinearSVR(
        epsilon=epsilon, C=C / 40**2, loss=loss, fit_intercept=False, tol=1e-10, max_iter=200_000
    ).fit(differences, targets)
    learner = SVRank(C, epsilon=epsilon, power=power, tol=1e-10).fit(X, y)
    assert_allclose(learner.coef_, peer.coef_, rtol=1e-3, atol=1e-5)
    norm = peer.coef_ @ peer.coef_
    best = explicit_objective(X @ peer.coef_ - y, norm, learner)
    assert_allclose(learner.objective_, best, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear+rbf"])
def test_kernel_support_vector_regression_on_pairs(kernel: str, rng: np.random.Generator) -> None:
    """The kernel between pairs of section 2.4, K_ij,kl = K_ik + K_jl − K_il − K_jk."""
    X, y = ratings(rng, 14, 3)
    gram = {
        "rbf": rbf_kernel(X, gamma=0.3),
        "poly": polynomial_kernel(X, degree=3, gamma=0.3, coef0=2.0),
        "linear+rbf": X @ X.T + 0.5 * rbf_kernel(X, gamma=0.3),
    }[kernel]
    options = {"degree": 3, "coef0": 2.0} if kernel == "poly" else {}
    options |= {"rbf_weight": 0.5} if kernel == "linear+rbf" else {}
    C, epsilon = 20.0, 0.25
    # both orders of a pair, so that the intercept of the peer is 0 by symmetry
    first, second = np.nonzero(~np.eye(14, dtype=bool))
    differences = gram[first] - gram[second]
    peer = SVR(kernel="precomputed", C=C / (2 * 14**2), epsilon=epsilon, tol=1e-9)
    peer.fit(differences[:, first] - differences[:, second], y[first] - y[second])
    pair_coef = np.zeros(len(first))
    pair_coef[peer.support_] = peer.dual_coef_[0]
    alpha = np.bincount(first, pair_coef, 14) - np.bincount(second, pair_coef, 14)
    learner = SVRank(C, epsilon=epsilon, kernel=kernel, gamma=0.3, tol=1e-10, **options).fit(X, y)
    norm = alpha @ gram @ alpha
    expected = explicit_objective(gram @ alpha - y, norm, learner)
    assert_allclose(learner.objective_, expected, rtol=1e-6)
    scores = learner.decision_function(X)
    assert_allclose(scores - scores[0], gram @ alpha - (gram @ alpha)[0], atol=1e-3)


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
def test_squared_cost_without_epsilon_is_mprank(C: float, rng: np.random.Generator) -> None:
    """Ridge regression with an unpenalised intercept and ridge m/(2C)."""
    X, y = ratings(rng, 50, 4)
    learner = SVRank(C, epsilon=0.0, power=2, tol=1e-11).fit(X, y)
    ridge = Ridge(alpha=50 / (2 * C), tol=1e-12).fit(X, y)
    assert_allclose(learner.decision_function(X), ridge.predict(X), atol=1e-4)
    twin = MPRank(C).fit(X, y)
    assert_allclose(learner.objective_, twin.objective_, rtol=1e-9)
    assert_allclose(learner.predict(X), twin.predict(X), atol=1e-4)


def test_squared_cost_without_epsilon_is_kernel_mprank(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 40, 4)
    centring = np.eye(40) - 1.0 / 40
    gram = centring @ rbf_kernel(X, gamma=0.2) @ centring
    expected = y.mean() + gram @ np.linalg.solve(gram + np.eye(40) * 40 / 60.0, y - y.mean())
    learner = SVRank(30.0, epsilon=0.0, power=2, kernel="rbf", gamma=0.2, tol=1e-11).fit(X, y)
    assert_allclose(learner.decision_function(X), expected, atol=1e-4)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("power", [1, 2])
def test_reported_objective_is_that_of_the_scores(
    kernel: str, power: int, rng: np.random.Generator
) -> None:
    X, y = ratings(rng, 60, 3)
    learner = SVRank(50.0, power=power, kernel=kernel, gamma=0.5).fit(X, y)
    if learner.coef_ is not None:
        norm = learner.coef_ @ learner.coef_
    else:
        norm = learner.dual_coef_ @ rbf_kernel(X, gamma=0.5) @ learner.dual_coef_
    expected = explicit_objective(learner.decision_function(X) - y, norm, learner)
    assert_allclose(learner.objective_, expected, rtol=1e-10)
    assert learner.converged_
    assert 0.0 <= learner.duality_gap_ <= learner.tol


def test_no_step_from_the_solution_gains_more_than_the_gap(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 80, 5)
    for power in (1, 2):
        learner = SVRank(20.0, power=power).fit(X, y)
        for size in (1e-4, 1e-3, 1e-2, 1e-1):
            for step in size * rng.normal(size=(20, 5)):
                coef = learner.coef_ + step
                other = explicit_objective(X @ coef - y, coef @ coef, learner)
                assert other >= learner.objective_ * (1.0 - learner.duality_gap_)


def test_gradient_of_the_objective(rng: np.random.Generator) -> None:
    """Norm plus loss, seen from w; the gradient vanishes at the solution."""
    X, y = ratings(rng, 30, 4)
    loss = InsensitiveLoss(y, epsilon=0.25, power=2, weight=10.0 / 30**2)

    def objective(w: Floats) -> float:
        return float(w @ w) + loss(X @ w)[0]

    def gradient(w: Floats) -> Floats:
        return 2.0 * w + X.T @ loss(X @ w)[1]

    for _ in range(3):
        assert check_grad(objective, gradient, rng.normal(size=4)) < 1e-5
    learner = SVRank(10.0, power=2, tol=1e-12).fit(X, y)
    assert_allclose(gradient(learner.coef_), 0.0, atol=1e-4)
    assert_allclose(objective(learner.coef_), learner.objective_, rtol=1e-10)


def test_scores_sit_on_the_rating_scale(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 40, 3)
    for kernel in ("linear", "rbf", "poly"):
        learner = SVRank(10.0, kernel=kernel).fit(X + 7.0, y)
        assert_allclose(learner.decision_function(X + 7.0).mean(), y.mean(), rtol=1e-9)
        shifted = SVRank(10.0, kernel=kernel).fit(X + 7.0, y + 100.0)
        expected = learner.decision_function(X + 7.0) + 100.0
        assert_allclose(shifted.decision_function(X + 7.0), expected, atol=1e-3)
        far = learner.predict(50.0 * X)
        assert (far.min(), far.max()) == (y.min(), y.max()) or kernel == "rbf"
        assert_allclose(far, np.clip(learner.decision_function(50.0 * X), y.min(), y.max()))


def test_offset_is_taken_off_and_added_back(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 40, 3)
    offset = rng.normal(size=40)
    for kernel in ("linear", "rbf"):
        learner = SVRank(10.0, kernel=kernel).fit(X, y, offset=offset)
        plain = SVRank(10.0, kernel=kernel).fit(X, y - offset)
        expected = plain.decision_function(X) + offset
        assert_allclose(learner.decision_function(X, offset=offset), expected, rtol=1e-12)
        assert_allclose(learner.decision_function(X, offset=offset).mean(), y.mean(), rtol=1e-9)


def test_named_and_precomputed_kernels_agree(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 40, 3)
    fresh = rng.normal(size=(5, 3))
    linear = SVRank(10.0, tol=1e-9).fit(X, y).decision_function(fresh)
    poly = SVRank(10.0, kernel="poly", degree=1, gamma=1.0, coef0=0.0, tol=1e-9).fit(X, y)
    assert_allclose(poly.decision_function(fresh), linear, atol=1e-4)
    given = SVRank(10.0, kernel="precomputed", tol=1e-9).fit(X @ X.T, y)
    assert_allclose(given.decision_function(fresh @ X.T), linear, atol=1e-4)


@pytest.mark.parametrize(("m", "n_zeros"), [(100, 80), (100, 150), (40, 80), (150, 150)])
def test_methods_agree(m: int, n_zeros: int, rng: np.random.Generator) -> None:
    """Columns of zeros change the method and nothing else.

    Newton's method in few features beside: in more features and in the span of the items, after
    rounds of the bundle method; in the span of few items; the bundle method alone.
    """
    X, y = ratings(rng, m, 4)
    wide = np.hstack([X, np.zeros((m, n_zeros))])
    for power in (1, 2):
        narrow = SVRank(10.0, power=power, tol=1e-9).fit(X, y)
        other = SVRank(10.0, power=power, tol=1e-9).fit(wide, y)
        assert_allclose(other.objective_, narrow.objective_, rtol=1e-8)
        assert_allclose(other.coef_[:4], narrow.coef_, atol=1e-4)
        assert_allclose(other.coef_[4:], 0.0, atol=1e-12)


def test_more_features_than_items(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 30, 90)
    for power in (1, 2):
        learner = SVRank(100.0, power=power, tol=1e-8).fit(X, y)
        given = SVRank(100.0, power=power, kernel="precomputed", tol=1e-8).fit(X @ X.T, y)
        assert learner.converged_
        assert_allclose(learner.objective_, given.objective_, rtol=2e-8)
        expected = explicit_objective(X @ learner.coef_ - y, learner.coef_ @ learner.coef_, learner)
        assert_allclose(learner.objective_, expected, rtol=1e-10)


@pytest.mark.parametrize("power", [1, 2])
def test_the_bundle_method_takes_over(
    power: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newton's method stopped early and said so: the tolerance is reached all the same."""
    X, y = ratings(rng, 60, 5)
    expected = SVRank(100.0, power=power, tol=1e-9).fit(X, y)

    def stopped(*arguments: Any) -> NewtonSolution:
        return minimise_by_newton(*arguments[:2], 1e-2, 1000)._replace(converged=False)

    monkeypatch.setattr(machine, "minimise_by_newton", stopped)
    learner = SVRank(100.0, power=power, tol=1e-6).fit(X, y)
    assert learner.converged_
    assert learner.duality_gap_ <= 1e-6
    assert_allclose(learner.objective_, expected.objective_, rtol=1.1e-6)
    assert_allclose(learner.predict(X), expected.predict(X), atol=0.02)


def test_the_better_of_two_ends_is_kept(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither method reaches the tolerance: the model with the smaller gap, which is told."""
    X, y = ratings(rng, 60, 5)

    def stopped(*arguments: Any) -> NewtonSolution:
        found = minimise_by_newton(*arguments[:2], 1e-9, 1000)
        # the plane 0 helps nobody
        nothing = {"plane_slope": np.zeros(60), "plane_constant": 0.0}
        return found._replace(converged=False, n_iter=5, **nothing)

    expected = SVRank(1e3, tol=1e-9).fit(X, y)
    monkeypatch.setattr(machine, "minimise_by_newton", stopped)
    learner = SVRank(1e3, tol=1e-12, max_iter=7).fit(X, y)
    assert not learner.converged_
    assert learner.n_iter_ == 7
    assert learner.duality_gap_ <= 1e-9
    assert learner.coef_.tobytes() == expected.coef_.tobytes()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_duplicated_rows_change_nothing(kernel: str, rng: np.random.Generator) -> None:
    """The objective is a mean over pairs: every row three times is the same problem."""
    X, y = ratings(rng, 25, 3)
    for power in (1, 2):
        once = SVRank(10.0, power=power, kernel=kernel, gamma=0.5, tol=1e-9).fit(X, y)
        thrice = SVRank(10.0, power=power, kernel=kernel, gamma=0.5, tol=1e-9)
        thrice.fit(np.tile(X, (3, 1)), np.tile(y, 3))
        assert_allclose(thrice.objective_, once.objective_, rtol=1e-8)
        assert_allclose(thrice.decision_function(X), once.decision_function(X), atol=2e-3)


def test_order_of_rows_does_not_matter(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 40, 3)
    order = rng.permutation(40)
    one, other = SVRank(10.0, tol=1e-9).fit(X, y), SVRank(10.0, tol=1e-9).fit(X[order], y[order])
    assert_allclose(other.coef_, one.coef_, atol=1e-4)


def test_same_input_same_bits(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 60, 4)
    one, other = SVRank(10.0).fit(X, y), SVRank(10.0).fit(np.asfortranarray(X), list(y))
    assert one.coef_.tobytes() == other.coef_.tobytes()


def test_inputs_stay_as_they_are(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 20, 3)
    gram, offset = X @ X.T, rng.normal(size=20)
    before = [array.copy() for array in (X, y, gram, offset)]
    for kernel in ("linear", "rbf", "poly", "linear+rbf"):
        learner = SVRank(kernel=kernel).fit(X, y, offset=offset)
        learner.decision_function(X, offset=offset)
    SVRank(kernel="precomputed").fit(gram, y).decision_function(gram)
    for array, copy in zip((X, y, gram, offset), before, strict=True):
        assert_allclose(array, copy, rtol=0, atol=0)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "linear+rbf"])
def test_export_and_import_give_the_same_bits(kernel: str, rng: np.random.Generator) -> None:
    X, y = ratings(rng, 30, 3)
    learner = SVRank(5.0, kernel=kernel, power=2).fit(X, y)
    exported = learner.to_params()
    for value in exported.values():
        assert value is None or isinstance(value, (bool, int, float, str, np.ndarray))
        assert not isinstance(value, np.ndarray) or value.ndim == 1
    back = SVRank.from_params(exported)
    assert back.decision_function(X).tobytes() == learner.decision_function(X).tobytes()
    assert back.get_params() == learner.get_params()
    assert (back.n_iter_, back.converged_) == (learner.n_iter_, learner.converged_)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0, 2.0]], [4.0]),
        ([[1.0, 2.0], [2.0, 0.0], [5.0, 1.0]], [3.0, 3.0, 3.0]),
        ([[1.0], [2.0], [7.0]], [3.0, 3.25, 3.1]),  # all within epsilon
        ([[0.0, 0.0], [0.0, 0.0]], [1.0, 5.0]),
        ([[2.0], [2.0], [2.0]], [1.0, 2.0, 5.0]),  # identical items
        ([[], [], []], [1.0, 2.0, 5.0]),  # no features
    ],
)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_nothing_to_learn_gives_the_constant(
    X: list[list[float]], y: list[float], kernel: str
) -> None:
    features = np.array(X).reshape(len(y), -1)
    for power in (1, 2):
        learner = SVRank(kernel=kernel, power=power, gamma=1.0).fit(features, y)
        assert learner.converged_
        assert_allclose(learner.decision_function(features), np.mean(y), rtol=1e-12)


def test_too_few_rounds_are_said(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 100, 10)
    early = SVRank(1e3, max_iter=3).fit(X, y)
    assert not early.converged_
    assert early.n_iter_ == 3
    assert early.duality_gap_ > early.tol
    done = SVRank(1e3).fit(X, y)
    assert early.objective_ * (1 - early.duality_gap_) <= done.objective_ <= early.objective_


@pytest.mark.parametrize("C", [1e-6, 1e6])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_extreme_trade_offs_converge(C: float, kernel: str, rng: np.random.Generator) -> None:
    X, y = ratings(rng, 80, 5)
    for power in (1, 2):
        assert SVRank(C, kernel=kernel, power=power).fit(X, y).converged_


def check_that_no_point_is_better_than_certified(learner: SVRank, X: Floats, y: Floats) -> None:
    K = learner._kernel()(X, X)

    def objective(dual: Floats) -> float:
        return explicit_objective(K @ dual - y, float(dual @ K @ dual), learner)

    assert learner.dual_coef_ is not None
    assert_allclose(learner.objective_, objective(learner.dual_coef_), rtol=1e-6)
    least = learner.objective_ * (1.0 - learner.duality_gap_)
    H = np.eye(len(y)) - 1.0 / len(y)
    values, vectors = np.linalg.eigh(H @ K @ H)
    for C in (1e-2 * learner.C, learner.C):  # ridge regressions, which are points as well
        shares = (vectors.T @ (y - y.mean())) / (np.maximum(values, 0.0) + len(y) / (2.0 * C))
        assert objective(H @ vectors @ shares) >= least


@pytest.mark.parametrize(
    ("scale", "options"),
    [
        (100.0, {"C": 1e4, "kernel": "poly", "gamma": 1.0, "degree": 3}),
        (1.0, {"C": 1e6, "kernel": "rbf"}),
        (1.0, {"C": 1e12, "kernel": "rbf", "gamma": 0.26858826026564314}),
    ],
)
def test_no_point_is_better_than_what_is_certified(scale: float, options: dict[str, Any]) -> None:
    """Rounding of great kernel values or a great C must not pass for a certificate."""
    rng = np.random.default_rng(0)
    X, y = scale * rng.normal(size=(40, 4)), rng.integers(1, 6, 40).astype(float)
    learner = SVRank(**options).fit(X, y)
    check_that_no_point_is_better_than_certified(learner, X, y)
    assert learner.converged_


@pytest.mark.parametrize("C", [1e14, 1e15, 1e16, 1e17])
def test_at_the_end_of_the_digits_nothing_false_is_certified(C: float) -> None:
    """Whether a solution is left there depends on the processor's last bits."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), rng.integers(1, 6, 40).astype(float)
    learner = SVRank(C, kernel="rbf")
    with contextlib.suppress(NumericFailureError):  # which says what to do: see below
        learner.fit(X, y)
    if hasattr(learner, "objective_"):
        check_that_no_point_is_better_than_certified(learner, X, y)
        assert learner.converged_ == (learner.duality_gap_ <= learner.tol)


def test_where_rounding_leaves_nothing_it_is_said() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), rng.integers(1, 6, 40).astype(float)
    with pytest.raises(NumericFailureError, match="lower C"):
        SVRank(1e20, kernel="rbf").fit(X, y)


def test_no_pairs_in_memory(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 4000, 5)
    SVRank(10.0).fit(X[:50], y[:50])
    tracemalloc.start()
    learner = SVRank(10.0).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert learner.converged_
    assert peak < 0.05 * 8 * len(y) ** 2  # one byte in twenty of a matrix over pairs


def test_what_is_given_is_checked(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 10, 2)
    with pytest.raises(InvalidDataError, match="NaN"):
        SVRank().fit(np.where(X > 0, np.nan, X), y)
    with pytest.raises(InvalidDataError, match="NaN"):
        SVRank().fit(X, np.full(10, np.inf))
    with pytest.raises(InvalidDataError, match="one per row"):
        SVRank().fit(X, y[:5])
    with pytest.raises(InvalidDataError, match="no examples"):
        SVRank().fit(X[:0], y[:0])
    with pytest.raises(InvalidDataError, match="two dimensions"):
        SVRank().fit(y, y)
    with pytest.raises(InvalidDataError, match="offset"):
        SVRank().fit(X, y, offset=[1.0])
    with pytest.raises(InvalidDataError, match="square"):
        SVRank(kernel="precomputed").fit(X, y)
    with pytest.raises(InvalidDataError, match="symmetric"):
        SVRank(kernel="precomputed").fit(np.triu(np.ones((10, 10))), y)
    with pytest.raises(InvalidDataError, match="fitted on 2"):
        SVRank().fit(X, y).decision_function(X[:, :1])
    with pytest.raises(InvalidDataError, match="fitted on 10"):
        SVRank(kernel="precomputed").fit(X @ X.T, y).decision_function(X)
    with pytest.raises(NotFittedError, match="call fit"):
        SVRank().decision_function(X)


@pytest.mark.parametrize(
    "wrong",
    [
        {"C": 0.0},
        {"C": float("nan")},
        {"epsilon": -0.1},
        {"power": 3},
        {"power": True},
        {"kernel": "sigmoid"},
        {"gamma": 0.0},
        {"tol": 0.0},
        {"max_iter": 0},
    ],
)
def test_parameters_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        SVRank(**wrong).fit([[1.0], [2.0]], [1.0, 2.0])  # type: ignore[arg-type]


def test_a_kernel_that_overflows_is_said(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 10, 2)
    with pytest.raises(NumericFailureError, match="scale X down"):
        SVRank(kernel="poly", degree=9, gamma=1.0).fit(1e60 * X, y)
    with pytest.raises(NumericFailureError, match="scale X down"):
        SVRank().fit(1e200 * X, y)


def test_a_kernel_that_is_no_kernel_is_said(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 10, 2)
    hollow = X @ X.T - 5.0 * np.outer(y, y)
    np.fill_diagonal(hollow, 0.0)
    for gram in (-np.eye(10), hollow):
        with pytest.raises(InvalidDataError, match="positive semi-definite"):
            SVRank(kernel="precomputed").fit(gram, y)
