"""The AUC by magnitudes, and the scorers for searches: against loops and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold

from spark_rank.learners import MPRank, PRank, RankSVM
from spark_rank.metrics import (
    auc,
    mean_squared_difference,
    misranking_scorer,
    msd_scorer,
    pairwise_misranking,
    rank_loss_scorer,
    weighted_auc,
)

ITEMS = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=1, max_size=12)


@settings(max_examples=200, deadline=None)
@given(ITEMS, st.sampled_from(["half", "strict"]))
def test_it_is_the_sum_over_all_pairs(items: list[tuple[int, int]], ties: str) -> None:
    h, y = np.array(items, dtype=float).T
    gaps = y[:, None] - y[None, :]
    order = np.sign(h[:, None] - h[None, :])
    right = (order > 0) + (0.5 if ties == "half" else 0.0) * (order == 0)
    possible = gaps[gaps > 0].sum()
    found = weighted_auc(h, y, ties=ties)  # type: ignore[arg-type]
    if possible == 0:
        assert found is None
    else:
        assert found == pytest.approx((gaps * right)[gaps > 0].sum() / possible)


def test_of_two_levels_it_is_the_auc() -> None:
    rng = np.random.default_rng(0)
    h, y = np.round(rng.normal(size=200), 1), rng.integers(0, 2, 200)
    assert weighted_auc(h, 3.0 * y + 1.0) == pytest.approx(auc(h, y))
    assert weighted_auc(h, y, ties="strict") == pytest.approx(auc(h, y, ties="strict"))
    assert weighted_auc([1.0, 2.0], [0.0, 1.7e308]) == 1.0
    with pytest.raises(ValueError, match="ties"):
        weighted_auc(h, y, ties="none")  # type: ignore[arg-type]


def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5))
    return X, np.clip(np.round(3.0 + X[:, 0] + 0.5 * rng.normal(size=60)), 1, 5)


@pytest.mark.parametrize(
    ("scorer", "metric"),
    [(misranking_scorer, pairwise_misranking), (msd_scorer, mean_squared_difference)],
)
def test_searches_choose_by_a_metric(scorer, metric) -> None:  # type: ignore[no-untyped-def]
    X, y = problem()
    grid, folds = {"C": [0.01, 1.0, 100.0]}, KFold(3)
    search = GridSearchCV(MPRank(), grid, scoring=scorer, cv=folds).fit(X, y)
    means = [
        -np.mean([
            metric(MPRank(C).fit(X[train], y[train]).decision_function(X[test]), y[test])
            for train, test in folds.split(X)
        ])
        for C in grid["C"]
    ]  # fmt: skip
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means)
    assert scorer(Ridge().fit(X, y), X, y) < 0.0  # predictions are scores too
    assert np.isnan(misranking_scorer(RankSVM().fit(X, y), X[:2], [3.0, 3.0]))


def test_rank_loss_is_in_ranks() -> None:
    X, y = problem()
    by_ranks = PRank(5, readout="averaged").fit(X, y.astype(int))
    by_levels = PRank(readout="averaged").fit(X, y / 2.0, levels=[0.5, 1.0, 1.5, 2.0, 2.5])
    loss = -np.abs(by_ranks.predict(X) - y).mean()
    assert rank_loss_scorer(by_ranks, X, y) == pytest.approx(loss)
    assert rank_loss_scorer(by_levels, X, y / 2.0) == pytest.approx(loss)
    assert by_levels.score(X, y / 2.0) == pytest.approx(loss)
