"""RankSVM beside ordinary support vector machines on explicit pair differences."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC

from spark_rank.learners.errors import InvalidDataError, InvalidParameterError, NotFittedError
from spark_rank.learners.pairs.losses import misranked_pairs
from spark_rank.learners.ranksvm import RankSVM

Floats = NDArray[np.float64]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def ratings(rng: np.random.Generator, m: int, d: int) -> tuple[Floats, Floats]:
    X = rng.normal(size=(m, d))
    y = np.clip(np.round(3 + X @ rng.normal(size=d) + 0.5 * rng.normal(size=m)), 1, 5)
    return X, y


def ordered_pairs(y: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions i and j of all pairs with y_i > y_j."""
    return np.nonzero(y[:, None] > y[None, :])


def explicit_objective(scores: Floats, norm: float, y: Floats, C: float) -> float:
    better, worse = ordered_pairs(y)
    margins = scores[better] - scores[worse]
    return float(0.5 * norm + C * np.maximum(1.0 - margins, 0.0).sum())


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_programme_with_slacks(C: float, rng: np.random.Generator) -> None:
    """Minimise ½‖w‖² + C Σ ξ under a constraint per pair, by sequential least squares."""
    X, y = ratings(rng, 8, 3)
    better, worse = ordered_pairs(y)
    differences = X[better] - X[worse]
    found = minimize(
        lambda v: 0.5 * v[:3] @ v[:3] + C * v[3:].sum(),
        np.concatenate([np.zeros(3), np.ones(len(better))]),
        method="SLSQP",
        bounds=[(None, None)] * 3 + [(0.0, None)] * len(better),
        constraints={"type": "ineq", "fun": lambda v: differences @ v[:3] - 1.0 + v[3:]},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    # the peer may stop at the optimum without calling it one; what it found must be feasible, and
    # then a value that is not the optimum's fails below
    slack = differences @ found.x[:3] - 1.0 + found.x[3:]
    assert min(slack.min(), found.x[3:].min()) > -1e-8, found.message
    learner = RankSVM(C, tol=1e-9).fit(X, y)
    assert_allclose(learner.objective_, found.fun, rtol=1e-6)
    assert_allclose(learner.coef_, found.x[:3], atol=1e-3)


@pytest.mark.parametrize("C", [0.001, 0.1])
def test_linear_machine_on_pair_differences(C: float, rng: np.random.Generator) -> None:
    X, y = ratings(rng, 40, 4)
    better, worse = ordered_pairs(y)
    differences = X[better] - X[worse]
    # the peer wants two classes: every other pair the other way round, the same hinge
    signs = np.where(np.arange(len(better)) % 2, 1.0, -1.0)
    peer = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-9, max_iter=1_000_000)
    coef = peer.fit(signs[:, None] * differences, signs).coef_[0]
    learner = RankSVM(C, tol=1e-9).fit(X, y)
    assert_allclose(learner.coef_, coef, rtol=1e-3, atol=1e-4)
    assert_allclose(learner.objective_, explicit_objective(X @ coef, coef @ coef, y, C), rtol=1e-6)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_kernel_machine_on_pair_differences(C: float, rng: np.random.Generator) -> None:
    """The lecture's kernel between pairs, K_ik + K_jl − K_jk − K_il."""
    X, y = ratings(rng, 18, 3)
    gram = rbf_kernel(X, gamma=0.4)
    better, worse = ordered_pairs(y)
    differences = gram[better] - gram[worse]
    pair_gram = differences[:, better] - differences[:, worse]
    # every pair both ways round, at half the price: the intercept is 0 by symmetry
    labels = np.repeat([1.0, -1.0], len(better))
    doubled = np.outer(labels, labels) * np.tile(pair_gram, (2, 2))
    peer = SVC(kernel="precomputed", C=C / 2, tol=1e-6).fit(doubled, labels)
    pair_coef = np.zeros(2 * len(better))
    pair_coef[peer.support_] = peer.dual_coef_[0] * labels[peer.support_]
    pair_coef = pair_coef[: len(better)] + pair_coef[len(better) :]
    alpha = np.bincount(better, pair_coef, 18) - np.bincount(worse, pair_coef, 18)
    learner = RankSVM(C, kernel="rbf", gamma=0.4, tol=1e-9).fit(X, y)
    expected = explicit_objective(gram @ alpha, alpha @ gram @ alpha, y, C)
    assert_allclose(learner.objective_, expected, rtol=1e-6)
    scores = learner.decision_function(X)
    assert_allclose(scores - scores[0], gram @ alpha - (gram @ alpha)[0], atol=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_reported_objective_is_that_of_the_scores(kernel: str, rng: np.random.Generator) -> None:
    X, y = ratings(rng, 60, 3)
    learner = RankSVM(0.5, kernel=kernel, gamma=0.5).fit(X, y)
    if learner.coef_ is not None:
        norm = learner.coef_ @ learner.coef_
    else:
        norm = learner.dual_coef_ @ rbf_kernel(X, gamma=0.5) @ learner.dual_coef_
    expected = explicit_objective(learner.decision_function(X), norm, y, 0.5)
    assert_allclose(learner.objective_, expected, rtol=1e-10)
    assert learner.converged_
    assert 0.0 <= learner.duality_gap_ <= learner.tol


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=2, max_size=12),
    st.sampled_from([0.01, 1.0, 50.0]),
    st.integers(0, 10**6),
)
# a plane whose norm is nothing but rounding
@example([3.0, 3.0, 2.0, 3.0, 1.0, 3.0, 1.0, 3.0, 3.0, 2.0], 1.0, 0)
def test_certificate_against_random_directions(y: list[float], C: float, seed: int) -> None:
    """Features on a coarse grid: duplicated examples, ties, separable and hopeless problems."""
    rng = np.random.default_rng(seed)
    X, targets = rng.integers(-1, 2, (len(y), 2)).astype(float), np.array(y)
    learner = RankSVM(C, tol=1e-6).fit(X, targets)
    assert learner.converged_
    coef = learner.coef_
    reached = explicit_objective(X @ coef, coef @ coef, targets, C)
    assert_allclose(learner.objective_, reached, rtol=1e-8, atol=1e-12)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for step in size * rng.normal(size=(10, 2)):
            other = coef + step
            value = explicit_objective(X @ other, other @ other, targets, C)
            assert value >= reached * (1.0 - 1e-6) - 1e-12


def test_separable_items_are_put_in_order(rng: np.random.Generator) -> None:
    x = rng.permutation(20).astype(float)
    learner = RankSVM(10.0, tol=1e-6).fit(x[:, None], x)
    # the hard margin: neighbours one apart need w = 1
    assert_allclose(learner.coef_, [1.0], rtol=1e-3)
    scores = learner.decision_function(x[:, None])
    assert misranked_pairs(scores, x.astype(np.int64), 20) == 0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_nearly_hard_margins_converge(kernel: str, rng: np.random.Generator) -> None:
    """A large C on repeated items: planes with whole-number subgradients depend on each other."""
    short = 0
    for _ in range(300):
        X = rng.integers(-1, 2, (12, 3)).astype(float)
        y = rng.integers(1, 4, 12).astype(float)
        learner = RankSVM(1e4, kernel=kernel, tol=1e-8).fit(X, y)
        # four orders below the default tolerance rounding may have the last word, and is told
        assert learner.converged_ == (learner.duality_gap_ <= 1e-8)
        assert learner.duality_gap_ < 1e-5
        short += not learner.converged_
    assert short <= 3


@pytest.mark.parametrize("C", [1.0, 1e3])
def test_great_kernel_values_are_learned_from(C: float, rng: np.random.Generator) -> None:
    """More polynomial features than items: all pairs can be put in order, by the margin."""
    X, y = 2.0 * rng.normal(size=(150, 10)), rng.integers(1, 6, 150).astype(float)
    learner = RankSVM(C, kernel="poly", degree=3, gamma=1.0).fit(X, y)
    assert learner.converged_
    scores = learner.decision_function(X)
    assert misranked_pairs(scores, y.astype(np.int64), 6) == 0
    dual = learner.dual_coef_
    assert dual is not None
    norm = float(dual @ learner._kernel()(X, X) @ dual)
    assert_allclose(learner.objective_, explicit_objective(scores, norm, y, C), rtol=1e-6)


def test_only_the_order_of_ratings_counts(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 40, 3)
    one, other = RankSVM(0.1).fit(X, y), RankSVM(0.1).fit(X, np.exp(y) - 100.0)
    assert one.coef_.tobytes() == other.coef_.tobytes()


def test_order_of_rows_does_not_matter(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 40, 3)
    order = rng.permutation(40)
    one, other = RankSVM(0.1, tol=1e-9).fit(X, y), RankSVM(0.1, tol=1e-9).fit(X[order], y[order])
    assert_allclose(other.coef_, one.coef_, atol=1e-4)


def test_a_constant_in_the_features_changes_nothing(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 40, 3)
    one, other = RankSVM(0.1, tol=1e-9).fit(X, y), RankSVM(0.1, tol=1e-9).fit(X + 1e4, y)
    assert_allclose(other.coef_, one.coef_, atol=1e-4)


def test_offset_takes_part_in_the_margins(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 12, 2)
    offset = rng.normal(size=12)

    def objective(w: Floats) -> float:
        return explicit_objective(X @ w + offset, w @ w, y, 0.3)

    learner = RankSVM(0.3, tol=1e-8).fit(X, y, offset=offset)
    assert_allclose(learner.objective_, objective(learner.coef_), rtol=1e-9)
    # a simplex search needs no gradient of the kinked objective
    options = {"xatol": 1e-8, "fatol": 1e-10}
    found = minimize(objective, learner.coef_ + 0.3, method="Nelder-Mead", options=options)
    assert learner.objective_ <= found.fun * (1.0 + 1e-6)
    scores = learner.decision_function(X, offset=offset)
    assert_allclose(scores, X @ learner.coef_ + offset, rtol=1e-12)


def test_an_offset_that_says_it_all_leaves_nothing_to_learn(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 20, 2)
    learner = RankSVM().fit(X, y, offset=2.0 * y)
    assert (learner.coef_ == 0.0).all()
    assert learner.objective_ == 0.0


def test_named_and_precomputed_kernels_agree(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 40, 3)
    fresh = rng.normal(size=(5, 3))
    linear = RankSVM(0.1, tol=1e-9).fit(X, y).decision_function(fresh)
    given = RankSVM(0.1, kernel="precomputed", tol=1e-9).fit(X @ X.T, y)
    # as a function of kernel values the machine is known up to a constant only
    assert_allclose(given.decision_function(fresh @ X.T), linear, atol=1e-4)
    wide = np.hstack([X, np.zeros((40, 80))])
    dual = RankSVM(0.1, tol=1e-9).fit(wide, y)
    assert_allclose(dual.coef_[:3], RankSVM(0.1, tol=1e-9).fit(X, y).coef_, atol=1e-4)


def test_views_and_locked_arrays_are_read(rng: np.random.Generator) -> None:
    """Strided, read-only, whole numbers: the same bits from the compiled solver."""
    X, y = ratings(rng, 30, 4)
    offset = rng.normal(size=30)
    expected = RankSVM(0.1).fit(X, y, offset=offset).coef_
    block = np.column_stack([X, y, offset])
    block.setflags(write=False)
    assert RankSVM(0.1).fit(block[:, :4], block[:, 4], offset=block[:, 5]).coef_.tobytes() == (
        expected.tobytes()
    )
    whole = RankSVM(1, tol=1).fit(X, y.astype(np.int32))
    assert_allclose(whole.objective_, RankSVM(1.0, tol=1.0).fit(X, y).objective_, rtol=0)


def test_many_levels_and_few(rng: np.random.Generator) -> None:
    """Up to 16 levels are gone through pair by pair; one level more, another method."""
    X = rng.normal(size=(80, 3))
    scores = X @ rng.normal(size=3) + rng.normal(size=80)
    for n_levels in (16, 17):
        y = np.floor(n_levels * np.argsort(np.argsort(scores)) / 80)
        assert len(np.unique(y)) == n_levels
        learner = RankSVM(0.01, tol=1e-7).fit(X, y)
        given = RankSVM(0.01, kernel="precomputed", tol=1e-7).fit(X @ X.T, y)
        assert_allclose(learner.objective_, given.objective_, rtol=2e-7)


def test_export_and_import_give_the_same_bits(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 30, 3)
    for kernel in ("linear", "rbf", "poly"):
        learner = RankSVM(0.1, kernel=kernel).fit(X, y)
        back = RankSVM.from_params(learner.to_params())
        assert back.decision_function(X).tobytes() == learner.decision_function(X).tobytes()
        assert back.get_params() == learner.get_params()


@pytest.mark.parametrize(
    ("X", "y"),
    [([[1.0, 2.0]], [4.0]), ([[1.0, 2.0], [2.0, 0.0]], [3.0, 3.0]), ([[0.0], [0.0]], [1.0, 2.0])],
)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_nothing_to_learn_gives_the_constant(
    X: list[list[float]], y: list[float], kernel: str
) -> None:
    learner = RankSVM(kernel=kernel, gamma=1.0).fit(X, y)
    assert learner.converged_
    assert_allclose(learner.decision_function(X), 0.0, atol=0)


def test_too_few_rounds_are_said(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 100, 10)
    early, done = RankSVM(max_iter=3).fit(X, y), RankSVM().fit(X, y)
    assert not early.converged_
    assert early.n_iter_ == 3
    assert early.objective_ * (1 - early.duality_gap_) <= done.objective_ <= early.objective_


def test_no_pairs_in_memory(rng: np.random.Generator) -> None:
    X = rng.normal(size=(4000, 5))
    y = X[:, 0] + rng.normal(size=4000)  # as many levels as items
    RankSVM(1e-6).fit(X[:50], y[:50])
    tracemalloc.start()
    learner = RankSVM(1e-6).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert learner.converged_
    assert peak < 0.05 * 8 * len(y) ** 2  # one byte in twenty of a matrix over pairs


def test_inputs_stay_as_they_are(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 20, 3)
    offset = rng.normal(size=20)
    before = [array.copy() for array in (X, y, offset)]
    for kernel in ("linear", "rbf"):
        RankSVM(kernel=kernel).fit(X, y, offset=offset).decision_function(X, offset=offset)
    for array, copy in zip((X, y, offset), before, strict=True):
        assert_allclose(array, copy, rtol=0, atol=0)


def test_what_is_given_is_checked(rng: np.random.Generator) -> None:
    X, y = ratings(rng, 10, 2)
    with pytest.raises(InvalidDataError, match="NaN"):
        RankSVM().fit(np.where(X > 0, np.nan, X), y)
    with pytest.raises(InvalidDataError, match="one per row"):
        RankSVM().fit(X, y[:5])
    with pytest.raises(InvalidDataError, match="no examples"):
        RankSVM().fit(X[:0], y[:0])
    with pytest.raises(InvalidDataError, match="square"):
        RankSVM(kernel="precomputed").fit(X, y)
    with pytest.raises(InvalidDataError, match="fitted on 2"):
        RankSVM().fit(X, y).decision_function(X[:, :1])
    with pytest.raises(NotFittedError, match="call fit"):
        RankSVM().decision_function(X)
    with pytest.raises(InvalidParameterError, match="C=0"):
        RankSVM(0).fit(X, y)
