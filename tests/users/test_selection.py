"""Hyper-parameters chosen for one user, against refits; None where errors are undefined."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spark_rank.learners import MPRank, PRank, RankBoost
from spark_rank.users.choice_prior import ChoicePrior
from spark_rank.users.fitting import Limits, Sample
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.selection import best_candidate, candidate_errors, held_back_errors
from spark_rank.users.specs import LearnerSpec

SCALE = RankScale((1.0, 2.0, 3.0, 4.0, 5.0))
LIMITS = Limits(SCALE, max_kernel_ratings=100, landmarks=10, folds=3)
RNG = np.random.default_rng(5)
M, D = 11, 3
X = RNG.normal(size=(M, D))
RATINGS = np.clip(np.round(3 + X @ RNG.normal(size=D) + RNG.normal(size=M) / 2), 1, 5)
OFFSET = RNG.normal(size=M) / 4
SAMPLE = Sample(X, RATINGS, OFFSET)


def spec(learner: str, grid: dict[str, list[Any]], selection: str = "sample", **params: Any) -> Any:
    return LearnerSpec("it", learner, True, params, grid, selection)


def test_leave_pair_out_is_that_of_refits() -> None:
    grid = {"C": [0.1, 10.0], "gamma": [0.2, 2.0]}
    found = candidate_errors(spec("mprank", grid, kernel="rbf", ridge="fixed"), SAMPLE, LIMITS)
    assert found is not None
    expected = []
    for C in grid["C"]:
        for gamma in grid["gamma"]:
            squares = []
            for i in range(M):
                for j in range(i):
                    kept = np.setdiff1d(np.arange(M), [i, j])
                    model = MPRank(C, kernel="rbf", gamma=gamma, ridge="fixed")
                    model.fit(X[kept], RATINGS[kept], offset=OFFSET[kept])
                    a, b = model.decision_function(X[[i, j]], offset=OFFSET[[i, j]])
                    squares.append(((a - b) - (RATINGS[i] - RATINGS[j])) ** 2)
            expected.append(np.mean(squares))
    assert_allclose(found, expected, rtol=1e-4)


def folds_by_hand(error: Any) -> float:
    total = 0.0
    for first in range(3):
        fold = [i for i in range(M) if i % 3 == first]
        rest = [i for i in range(M) if i % 3 != first]
        total += len(fold) * error(rest, fold)
    return total / M


def test_folds_measure_each_learner_by_what_it_predicts() -> None:
    def squares(rest: list[int], fold: list[int]) -> float:
        model = MPRank(2.0).fit(X[rest], RATINGS[rest], offset=OFFSET[rest])
        scores = model.decision_function(X[fold], offset=OFFSET[fold])
        # the paper's mean is over all m² ordered pairs
        pairs = [(i, j) for i in range(len(fold)) for j in range(len(fold))]
        return float(np.mean([((scores[i] - scores[j]) - (RATINGS[fold[i]] - RATINGS[fold[j]])) ** 2
                              for i, j in pairs]))  # fmt: skip

    def ranks(rest: list[int], fold: list[int]) -> float:
        examples = np.column_stack([X, OFFSET])
        model = PRank(5, epochs=3).fit(examples[rest], RATINGS[rest])
        return float(np.abs(model.predict(examples[fold]) - RATINGS[fold]).mean())

    def order(rest: list[int], fold: list[int]) -> float:
        model = RankBoost(7).fit(X[rest], RATINGS[rest], offset=OFFSET[rest])
        scores = model.decision_function(X[fold], offset=OFFSET[fold])
        pairs = [(i, j) for i in range(len(fold)) for j in range(len(fold))
                 if RATINGS[fold[i]] > RATINGS[fold[j]]]  # fmt: skip
        return float(np.mean([scores[i] <= scores[j] for i, j in pairs]))

    for name, grid, error in (
        ("mprank", {"C": [2.0]}, squares),
        ("prank", {"epochs": [3]}, ranks),
        ("rankboost", {"n_rounds": [7]}, order),
    ):
        found = candidate_errors(spec(name, grid, "k_fold"), SAMPLE, LIMITS)
        assert found is not None
        assert_allclose(found, [folds_by_hand(error)], rtol=1e-9)


def test_the_least_error_wins_and_the_first_of_equals() -> None:
    chosen = best_candidate(
        spec("mprank", {"C": [1e-9, 1.0, 1e9]}, "leave_pair_out"), SAMPLE, LIMITS
    )
    errors = candidate_errors(spec("mprank", {"C": [1e-9, 1.0, 1e9]}), SAMPLE, LIMITS)
    assert errors is not None
    assert chosen == {"C": [1e-9, 1.0, 1e9][int(np.argmin(errors))]}
    # a seed of nothing: both points are the same learner
    equal = spec("mprank", {"degree": [3, 2]}, "k_fold", C=1.0)
    assert best_candidate(equal, SAMPLE, LIMITS) == {"C": 1.0, "degree": 3}


def test_held_back_ratings_are_measured_pair_by_pair() -> None:
    learned_from, held_back = SAMPLE.part(slice(0, 7)), SAMPLE.part(slice(7, M))
    pairs = [(i, j) for i in range(M - 7) for j in range(M - 7) if i != j]
    y = held_back.ratings
    for name, params, error in (
        ("mprank", {"C": 2.0}, lambda h, i, j: ((h[i] - h[j]) - (y[i] - y[j])) ** 2),
        ("svrank", {"C": 2.0}, lambda h, i, j: ((h[i] - h[j]) - (y[i] - y[j])) ** 2),
    ):
        point = spec(name, {"C": [2.0]})
        model = point.make(SCALE, params)
        model.fit(learned_from.X, learned_from.ratings, offset=learned_from.offset)
        h = model.decision_function(held_back.X, offset=held_back.offset)
        found = held_back_errors(point, learned_from, held_back, LIMITS)
        assert found is not None
        assert_allclose(found, [np.mean([error(h, i, j) for i, j in pairs])], rtol=1e-9)


def test_held_back_ratings_that_cannot_tell_are_left_out() -> None:
    whole, order = spec("mprank", {"C": [1.0]}), spec("ranksvm", {"C": [1.0]})
    equal = Sample(X[:3], np.full(3, 4.0), OFFSET[:3])
    assert held_back_errors(whole, SAMPLE.part(slice(0, 1)), SAMPLE, LIMITS) is None
    assert held_back_errors(whole, equal, SAMPLE, LIMITS) is None
    assert held_back_errors(whole, SAMPLE, SAMPLE.part(slice(0, 1)), LIMITS) is None
    assert held_back_errors(order, SAMPLE, equal, LIMITS) is None
    assert held_back_errors(whole, SAMPLE, equal, LIMITS) is not None


def test_a_prior_has_the_users_own_errors_weigh_by_their_ratings() -> None:
    grid = {"C": [1e-9, 1.0, 1e9]}
    own = candidate_errors(spec("mprank", grid, "leave_pair_out"), SAMPLE, LIMITS)
    assert own is not None
    for trust in (1e-9, 1e9):
        prior = ChoicePrior((3.0, 3.0, 1.0), tuple(np.zeros(3)), trust)
        point = replace(spec("mprank", grid, "leave_pair_out"), prior=prior)
        best = int(np.argmin(np.array(prior.errors) + M / (M + trust) * own))
        assert best_candidate(point, SAMPLE, LIMITS) == {"C": grid["C"][best]}
        few = SAMPLE.part(np.arange(3))
        assert best_candidate(point, few, LIMITS) == {"C": 1e9}


def test_too_few_ratings_take_the_first() -> None:
    few = SAMPLE.part(np.arange(3))
    grid = {"C": [5.0, 1.0]}
    for selection in ("k_fold", "leave_pair_out"):
        assert candidate_errors(spec("mprank", grid, selection), few, LIMITS) is None
        assert best_candidate(spec("mprank", grid, selection), few, LIMITS) == {"C": 5.0}


def test_ratings_that_are_all_equal_tell_nothing() -> None:
    equal = Sample(X, np.full(M, 4.0), OFFSET)
    for name in ("mprank", "ranksvm", "prank"):
        selection = "sample" if name == "mprank" else "k_fold"
        grid = {"epochs": [1, 2]} if name == "prank" else {"C": [1.0, 2.0]}
        assert candidate_errors(spec(name, grid, selection), equal, LIMITS) is None
    # an order has nothing to be measured by where every fold is equal, ratings have
    folds = Sample(X[:4], np.array([5.0, 4.0, 5.0, 4.0]), OFFSET[:4])
    grid = {"C": [1.0, 2.0]}
    assert candidate_errors(spec("ranksvm", grid, "k_fold"), folds, LIMITS) is None
    assert candidate_errors(spec("svrank", grid, "k_fold"), folds, LIMITS) is not None


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize(
    ("learner", "grid", "selection", "most"),
    [
        ("mprank", {"degree": [300, 1]}, "leave_pair_out", 100),
        ("mprank", {"degree": [300, 1]}, "k_fold", 100),
        ("svrank", {"degree": [300, 1]}, "k_fold", 5),  # on landmarks
        ("widrow_hoff", {"eta": [1e200, 0.01]}, "k_fold", 100),
    ],
)
def test_a_point_that_cannot_be_learned_is_never_chosen(
    learner: str, grid: dict[str, list[Any]], selection: str, most: int
) -> None:
    limits = replace(LIMITS, max_kernel_ratings=most, landmarks=5)
    fixed = {"kernel": "poly", "gamma": 1e3} if "degree" in grid else {}
    point = spec(learner, grid, selection, **fixed)
    errors = candidate_errors(point, SAMPLE, limits)
    assert errors is not None
    assert errors[0] == math.inf
    assert math.isfinite(errors[1])
    (name,) = grid
    assert best_candidate(point, SAMPLE, limits)[name] == grid[name][1]


def test_many_ratings_are_chosen_by_folds_not_by_their_square() -> None:
    limits = Limits(SCALE, max_kernel_ratings=10, landmarks=10, folds=3)
    pair_out = spec("mprank", {"C": [0.1, 1.0]}, "leave_pair_out")
    by_folds = spec("mprank", {"C": [0.1, 1.0]}, "k_fold")
    found, expected = (candidate_errors(one, SAMPLE, limits) for one in (pair_out, by_folds))
    assert found is not None
    assert expected is not None
    assert_allclose(found, expected, rtol=0)
