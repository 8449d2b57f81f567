"""RankBoost beside the lecture's pseudo-code over explicit pairs."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from spark_rank.learners.errors import (
    InvalidDataError,
    InvalidParameterError,
    NotFittedError,
    NumericFailureError,
)
from spark_rank.learners.rankboost import RankBoost

Floats = NDArray[np.float64]
NAN = float("nan")


@dataclass
class Explicit:
    """What the pseudo-code chose, round by round."""

    features: list[int] = field(default_factory=list)
    cuts: list[float] = field(default_factory=list)
    complements: list[bool] = field(default_factory=list)
    alphas: list[float] = field(default_factory=list)
    normalizers: list[float] = field(default_factory=list)
    misranking: list[float] = field(default_factory=list)
    scores: Floats = field(default_factory=lambda: np.zeros(0))


def fill_medians(X: Floats) -> Floats:
    filled = X.copy()
    for column in filled.T:
        rated = column[~np.isnan(column)]
        column[np.isnan(column)] = np.median(rated) if len(rated) else 0.0
    return filled


def base_rankers(X: Floats) -> list[tuple[int, float, bool, Floats]]:
    """All thresholds and complements, in the order in which ties are decided."""
    rankers = []
    for feature, column in enumerate(X.T):
        for cut in sorted(set(column[~np.isnan(column)])):
            rankers.append((feature, float(cut), False, (column >= cut).astype(float)))
            rankers.append((feature, float(cut), True, (column < cut).astype(float)))
    return rankers


def explicit_rankboost(
    X: Floats, y: Floats, n_rounds: int, smoothing: float | None = None
) -> Explicit:
    """RANKBOOST(S) of the lecture, line by line, over the list of pairs (x, x′), y_x < y_x′."""
    m = len(y)
    pairs = [(i, j) for i in range(m) for j in range(m) if y[i] < y[j]]
    result = Explicit(scores=np.zeros(m))
    if not pairs:
        return result
    lower, upper = np.array(pairs).T
    D = np.full(len(pairs), 1.0 / len(pairs))
    for _ in range(n_rounds):
        best, chosen = 0.0, None
        for ranker in base_rankers(X):
            h = ranker[3]
            edge = float(D @ (h[upper] - h[lower]))
            if edge > best + 1e-10:
                best, chosen = edge, ranker
        if chosen is None:
            break
        feature, cut, complement, h = chosen
        signs = h[upper] - h[lower]
        plus, minus, equal = (float(D[signs == s].sum()) for s in (1.0, -1.0, 0.0))
        added = smoothing if smoothing or (smoothing == 0.0 and minus) else 1.0 / len(pairs)
        alpha = 0.5 * math.log((plus + added) / (minus + added))
        D = D * np.exp(-alpha * signs)
        Z = float(D.sum())
        assert_allclose(Z, equal + plus * math.exp(-alpha) + minus * math.exp(alpha), rtol=1e-12)
        D = D / Z
        result.scores = result.scores + alpha * h
        result.features.append(feature)
        result.cuts.append(cut)
        result.complements.append(complement)
        result.alphas.append(alpha)
        result.normalizers.append(Z)
        share = float(np.mean(result.scores[upper] <= result.scores[lower]))
        result.misranking.append(share)
        if (plus and minus == equal == 0.0) or Z > 1.0 - 1e-6:
            break
    return result


def assert_same(learner: RankBoost, twin: Explicit) -> None:
    assert learner.features_.tolist() == twin.features
    assert learner.cuts_.tolist() == twin.cuts
    assert learner.complements_.tolist() == twin.complements
    # a ranker that is next to chance has an α near 0, the logarithm of a ratio near 1
    assert_allclose(learner.alphas_, twin.alphas, rtol=1e-9, atol=1e-13)
    assert_allclose(learner.normalizers_, twin.normalizers, rtol=1e-9)
    assert_allclose(learner.train_misranking_, twin.misranking, rtol=1e-12)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def reviews(
    rng: np.random.Generator, m: int, d: int, missing: float = 0.0
) -> tuple[Floats, Floats]:
    """Ratings of m items by d reviewers, some of whom share the user's taste."""
    taste = rng.normal(size=m)
    likeness = np.linspace(1.0, -0.5, d)
    noise = rng.normal(size=(m, d))
    X = np.clip(np.round(3 + taste[:, None] * likeness + 0.7 * noise), 1, 5)
    X[rng.random((m, d)) < missing] = NAN
    return X, np.clip(np.round(3 + taste + 0.5 * rng.normal(size=m)), 1, 5)


small_problems = st.tuples(st.integers(1, 9), st.integers(1, 3)).flatmap(
    lambda shape: st.tuples(
        st.lists(
            st.lists(st.sampled_from([1.0, 2.0, 3.0, NAN]), min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        ).map(np.array),
        st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=shape[0], max_size=shape[0]).map(
            np.array
        ),
    )
)


@given(small_problems)
def test_medians_follow_the_pseudo_code(problem: tuple[Floats, Floats]) -> None:
    X, y = problem
    learner = RankBoost(8).fit(X, y)
    assert_same(learner, explicit_rankboost(fill_medians(X), y, 8))


@given(small_problems)
def test_abstaining_follows_the_pseudo_code(problem: tuple[Floats, Floats]) -> None:
    X, y = problem
    learner = RankBoost(8, missing="abstain").fit(X, y)
    assert_same(learner, explicit_rankboost(X, y, 8))


@pytest.mark.parametrize("smoothing", [None, 0.0, 1e-6, 0.05])
def test_many_rounds_follow_the_pseudo_code(
    smoothing: float | None, rng: np.random.Generator
) -> None:
    X, y = reviews(rng, 40, 6, missing=0.3)
    learner = RankBoost(60, smoothing=smoothing).fit(X, y)
    twin = explicit_rankboost(fill_medians(X), y, 60, smoothing)
    assert len(twin.alphas) == 60
    assert_same(learner, twin)
    assert_allclose(learner.decision_function(X), twin.scores, rtol=1e-9)


def test_continuous_ratings_and_features(rng: np.random.Generator) -> None:
    """As many levels as items, as many cuts as items."""
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, -1.0, 0.0] + 0.5 * rng.normal(size=30)
    assert_same(RankBoost(40).fit(X, y), explicit_rankboost(X, y, 40))


def test_two_levels_are_the_bipartite_case(rng: np.random.Generator) -> None:
    """The lecture's efficient form: a distribution per side, ε⁺ − ε⁻ from their averages of h."""
    X, _ = reviews(rng, 40, 4)
    y = (X[:, 0] + rng.normal(size=40) > 3).astype(float)
    learner = RankBoost(20).fit(X, y)
    potential = np.zeros(40)
    for t in range(20):
        negative = np.where(y == 0, np.exp(potential), 0.0)
        positive = np.where(y == 1, np.exp(-potential), 0.0)
        negative, positive = negative / negative.sum(), positive / positive.sum()
        edges = [float((positive - negative) @ h) for _, _, _, h in base_rankers(X)]
        best = base_rankers(X)[int(np.argmax(np.array(edges) > max(edges) - 1e-10))]
        assert (learner.features_[t], learner.cuts_[t], learner.complements_[t]) == best[:3]
        potential += learner.alphas_[t] * best[3]


@given(small_problems)
def test_the_objective_never_increases_and_bounds_misranking(
    problem: tuple[Floats, Floats],
) -> None:
    X, y = problem
    for missing in ("median", "abstain"):
        learner = RankBoost(10, missing=missing).fit(X, y)
        assert (learner.normalizers_ <= 1.0 + 1e-12).all()
        bound = np.cumprod(learner.normalizers_)
        assert (learner.train_misranking_ <= bound * (1.0 + 1e-9)).all()
        lower, upper = np.nonzero(y[:, None] < y[None, :])
        if len(lower):
            scores = learner.decision_function(X)
            loss = np.exp(scores[lower] - scores[upper]).mean()
            assert_allclose(loss, np.prod(learner.normalizers_), rtol=1e-9)


def test_alpha_minimises_the_objective_along_its_ranker(rng: np.random.Generator) -> None:
    """Coordinate descent: with next to no smoothing α is the exact line search."""
    X, y = reviews(rng, 40, 5)
    learner = RankBoost(5, smoothing=1e-14).fit(X, y)
    lower, upper = np.nonzero(y[:, None] < y[None, :])
    scores = np.zeros(40)
    for t, after in enumerate(learner.staged_decision_function(X)):
        h = (after - scores) / learner.alphas_[t]

        def objective(alpha: float, scores: Floats = scores, h: Floats = h) -> float:
            moved = scores + alpha * h
            return float(np.exp(moved[lower] - moved[upper]).mean())

        found = minimize_scalar(objective, bracket=(0.0, 1.0), tol=1e-12)
        assert_allclose(learner.alphas_[t], found.x, atol=1e-6)
        scores = after


def test_unsmoothed_normalizer_is_that_of_the_lecture(rng: np.random.Generator) -> None:
    """Z = ε⁰ + 2 √(ε⁺ε⁻) where α = ½ ln(ε⁺/ε⁻)."""
    X, y = reviews(rng, 60, 4)
    learner = RankBoost(1, smoothing=1e-300).fit(X, y)
    feature, cut = learner.features_[0], learner.cuts_[0]
    h = (X[:, feature] >= cut) != learner.complements_[0]
    lower, upper = np.nonzero(y[:, None] < y[None, :])
    plus, minus = np.mean(h[upper] & ~h[lower]), np.mean(~h[upper] & h[lower])
    assert_allclose(learner.normalizers_[0], 1 - plus - minus + 2 * np.sqrt(plus * minus))


def test_staged_scores(rng: np.random.Generator) -> None:
    X, y = reviews(rng, 50, 5, missing=0.2)
    fresh, _ = reviews(rng, 20, 5, missing=0.2)
    for missing in ("median", "abstain"):
        learner = RankBoost(12, missing=missing).fit(X, y)
        stages = list(learner.staged_decision_function(fresh))
        assert len(stages) == 12
        assert stages[-1].tobytes() == learner.decision_function(fresh).tobytes()
        for n_rounds in (1, 5):
            short = RankBoost(n_rounds, missing=missing).fit(X, y)
            assert short.decision_function(fresh).tobytes() == stages[n_rounds - 1].tobytes()


def test_train_misranking_is_that_of_the_scores(rng: np.random.Generator) -> None:
    X, y = reviews(rng, 50, 5, missing=0.2)
    learner = RankBoost(15).fit(X, y)
    lower, upper = np.nonzero(y[:, None] < y[None, :])
    for stage, misranking in zip(
        learner.staged_decision_function(X), learner.train_misranking_, strict=True
    ):
        assert_allclose(misranking, np.mean(stage[upper] <= stage[lower]), rtol=1e-12)


def test_missing_ratings_take_the_training_median() -> None:
    X = np.array([[1.0, NAN], [2.0, NAN], [5.0, NAN], [NAN, NAN]])
    learner = RankBoost(3).fit(X, [1.0, 2.0, 3.0, 2.0])
    assert learner.medians_.tolist() == [2.0, 0.0]
    assert set(learner.features_) == {0}
    scores = learner.decision_function([[NAN, 3.0], [2.0, NAN]])
    assert scores[0] == scores[1]


def test_missing_ratings_abstain() -> None:
    X = np.array([[1.0], [2.0], [5.0], [NAN], [NAN]])
    for y in ([1.0, 2.0, 3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 1.0, 1.0]):
        learner = RankBoost(5, missing="abstain").fit(X, y)
        assert learner.medians_ is None
        assert learner.decision_function([[NAN]]).tolist() == [0.0]
        assert (learner.decision_function(X)[:3] != 0.0).any()


def test_having_rated_at_all_can_be_what_counts() -> None:
    """With abstention the lowest cut tells rated from unrated."""
    X = np.array([[3.0], [3.0], [NAN], [NAN]])
    learner = RankBoost(1, missing="abstain").fit(X, [5.0, 4.0, 1.0, 2.0])
    assert (learner.cuts_.tolist(), learner.complements_.tolist()) == ([3.0], [False])
    assert len(RankBoost(1).fit(X, [5.0, 4.0, 1.0, 2.0]).alphas_) == 0


def test_ties_go_to_the_first_feature_and_cut() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    # the same column twice, once turned round: its complements are the same base rankers
    X = np.stack([5.0 - x, x, x], axis=1)
    learner = RankBoost(1).fit(X, x)
    # cuts at 2, 3, 4 have edges 3/6, 4/6, 3/6
    assert (learner.features_[0], learner.cuts_[0], learner.complements_[0]) == (0, 3.0, True)
    even = RankBoost(1).fit(x[[0, 0, 1, 1, 2, 2]][:, None], [1.0, 1.0, 2.0, 2.0, 3.0, 3.0])
    assert even.cuts_[0] == 2.0  # cuts 2 and 3 tie


def test_a_perfect_ranker_gets_a_finite_alpha() -> None:
    x = np.array([1.0, 1.0, 2.0, 2.0])
    learner = RankBoost(3).fit(x[:, None], x)
    assert_allclose(learner.alphas_[0], 0.5 * math.log((1 + 0.25) / 0.25))
    assert learner.train_misranking_[0] == 0.0


def test_a_perfect_ranker_is_the_last() -> None:
    x = np.repeat([1.0, 2.0], 20)
    for smoothing in (None, 0.0, 0.25):
        learner = RankBoost(5000, smoothing=smoothing).fit(x[:, None], x)
        s = smoothing or 1.0 / 400.0
        assert_allclose(learner.alphas_, [0.5 * math.log(1.0 + 1.0 / s)])
        assert learner.train_misranking_.tolist() == [0.0]


def test_rounds_end_where_the_loss_stops_falling() -> None:
    """The one base ranker has no fault, but leaves ties that nothing can part."""
    x, y = np.array([[0.0], [1.0], [1.0], [1.0]]), [1.0, 2.0, 3.0, 3.0]
    learner = RankBoost(100_000).fit(x, y)
    assert 1 < len(learner.alphas_) < 1000
    assert 1.0 - learner.normalizers_[-1] < 1e-6 <= (1.0 - learner.normalizers_[:-1]).min()


def test_without_smoothing_alpha_is_the_one_of_the_lecture(rng: np.random.Generator) -> None:
    X, y = reviews(rng, 60, 6)
    learner = RankBoost(20, smoothing=0.0).fit(X, y)
    assert_same(learner, explicit_rankboost(X, y, 20, 0.0))
    assert len(learner.alphas_) == 20
    first = RankBoost(1, smoothing=0.0).fit(X, y)
    h = first.decision_function(X) / first.alphas_[0]
    signs = (h[None, :] - h[:, None])[y[:, None] < y]
    faults, right = np.mean(signs == -1.0), np.mean(signs == 1.0)
    assert_allclose(first.alphas_, 0.5 * np.log(right / faults))
    assert_allclose(first.normalizers_, np.mean(signs == 0.0) + 2.0 * np.sqrt(right * faults))


def test_an_offset_that_overflows_is_named() -> None:
    x, offset = np.array([[0.0], [1.0], [2.0]]), [1.7e308, -1.7e308, 0.0]
    with pytest.raises(NumericFailureError, match="offset"):
        RankBoost().fit(x, [1.0, 2.0, 3.0], offset=offset)


def test_thousands_of_rounds_do_not_overflow() -> None:
    """Scores of items in perfect order drift apart without bound; weights stay finite."""
    x = np.repeat([1.0, 2.0, 3.0], 4)
    learner = RankBoost(2000).fit(x[:, None], x)
    assert len(learner.alphas_) == 2000
    scores = learner.decision_function(x[:, None])
    assert np.isfinite(scores).all()
    assert scores.max() - scores.min() > 1500  # e to that power is beyond float64
    assert np.isfinite(learner.normalizers_).all()
    assert (learner.normalizers_ > 0.0).all()


def test_rounds_end_where_no_ranker_beats_chance() -> None:
    X = np.array([[1.0], [2.0], [1.0], [2.0]])
    learner = RankBoost(10).fit(X, [1.0, 1.0, 2.0, 2.0])
    assert len(learner.alphas_) == 0
    assert learner.decision_function(X).tolist() == [0.0] * 4
    assert list(learner.staged_decision_function(X)) == []


@pytest.mark.parametrize("y", [[3.0], [3.0, 3.0, 3.0]])
@pytest.mark.parametrize("missing", ["median", "abstain"])
def test_no_pairs_give_the_constant(y: list[float], missing: str) -> None:
    X = np.arange(2.0 * len(y)).reshape(-1, 2)
    learner = RankBoost(missing=missing).fit(X, y)
    assert len(learner.alphas_) == 0
    assert learner.decision_function(X).tolist() == [0.0] * len(y)
    assert learner.decision_function(X, offset=y).tolist() == y


def test_offset_is_where_boosting_starts(rng: np.random.Generator) -> None:
    X, y = reviews(rng, 40, 4)
    first = RankBoost(4).fit(X, y)
    second = RankBoost(3).fit(X, y, offset=first.decision_function(X))
    whole = RankBoost(7).fit(X, y)
    assert second.features_.tolist() == whole.features_[4:].tolist()
    assert_allclose(second.alphas_, whole.alphas_[4:], rtol=1e-12)
    assert_allclose(second.normalizers_, whole.normalizers_[4:], rtol=1e-12)
    scores = second.decision_function(X, offset=first.decision_function(X))
    assert_allclose(scores, whole.decision_function(X), rtol=1e-12)


def test_only_the_order_of_ratings_counts(rng: np.random.Generator) -> None:
    X, y = reviews(rng, 40, 4)
    one, other = RankBoost(20).fit(X, y), RankBoost(20).fit(X, y**3 - 50.0)
    assert one.decision_function(X).tobytes() == other.decision_function(X).tobytes()


def test_order_of_rows_does_not_matter(rng: np.random.Generator) -> None:
    X, y = reviews(rng, 40, 4, missing=0.3)
    order = rng.permutation(40)
    one, other = RankBoost(30).fit(X, y), RankBoost(30).fit(X[order], y[order])
    assert one.features_.tolist() == other.features_.tolist()
    assert one.cuts_.tolist() == other.cuts_.tolist()
    assert_allclose(other.alphas_, one.alphas_, rtol=1e-9)


def test_duplicated_rows_change_nothing_but_the_smoothing(rng: np.random.Generator) -> None:
    X, y = reviews(rng, 30, 4)
    once = RankBoost(20, smoothing=0.01).fit(X, y)
    twice = RankBoost(20, smoothing=0.01).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    assert once.features_.tolist() == twice.features_.tolist()
    assert_allclose(twice.alphas_, once.alphas_, rtol=1e-9)


@pytest.mark.parametrize("missing", ["median", "abstain"])
def test_export_and_import_give_the_same_bits(missing: str, rng: np.random.Generator) -> None:
    X, y = reviews(rng, 40, 4, missing=0.3)
    learner = RankBoost(20, missing=missing).fit(X, y)
    exported = learner.to_params()
    for value in exported.values():
        assert value is None or isinstance(value, (bool, int, float, str, np.ndarray))
    back = RankBoost.from_params(exported)
    assert back.decision_function(X).tobytes() == learner.decision_function(X).tobytes()
    assert back.get_params() == learner.get_params()


def test_inputs_stay_as_they_are(rng: np.random.Generator) -> None:
    X, y = reviews(rng, 40, 4, missing=0.3)
    offset = rng.normal(size=40)
    before = [array.copy() for array in (X, y, offset)]
    for missing in ("median", "abstain"):
        learner = RankBoost(5, missing=missing).fit(X, y, offset=offset)
        list(learner.staged_decision_function(X, offset=offset))
        learner.decision_function(X, offset=offset)
    for array, copy in zip((X, y, offset), before, strict=True):
        assert_allclose(array, copy, rtol=0, atol=0)


def test_no_pairs_in_memory(rng: np.random.Generator) -> None:
    X, y = reviews(rng, 4000, 5)
    RankBoost(2).fit(X[:50], y[:50])
    tracemalloc.start()
    RankBoost(5).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.05 * 8 * len(y) ** 2  # one byte in twenty of a matrix over pairs


def test_what_is_given_is_checked(rng: np.random.Generator) -> None:
    X, y = reviews(rng, 10, 2)
    with pytest.raises(InvalidDataError, match="infinity"):
        RankBoost().fit(np.where(X > 3, np.inf, X), y)
    with pytest.raises(InvalidDataError, match="NaN"):
        RankBoost().fit(X, np.full(10, NAN))
    with pytest.raises(InvalidDataError, match="one per row"):
        RankBoost().fit(X, y[:5])
    with pytest.raises(InvalidDataError, match="no examples"):
        RankBoost().fit(X[:0], y[:0])
    with pytest.raises(InvalidDataError, match="offset"):
        RankBoost().fit(X, y, offset=[1.0])
    with pytest.raises(InvalidDataError, match="fitted on 2"):
        RankBoost().fit(X, y).decision_function(X[:, :1])
    with pytest.raises(NotFittedError, match="call fit"):
        RankBoost().decision_function(X)


@pytest.mark.parametrize(
    "wrong", [{"n_rounds": 0}, {"missing": "mean"}, {"smoothing": -0.1}, {"smoothing": NAN}]
)
def test_parameters_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        RankBoost(**wrong).fit([[1.0], [2.0]], [1.0, 2.0])  # type: ignore[arg-type]
