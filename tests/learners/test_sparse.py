"""Sparse features give what the same features give when they are dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from spark_rank.learners import (
    OAP,
    ConstantScorer,
    MPRank,
    MulticlassPerceptron,
    PRank,
    RankBoost,
    RankSVM,
    SVRank,
    WidrowHoff,
)
from spark_rank.learners.errors import InvalidDataError, InvalidParameterError

KINDS = (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix)


def problem(d: int, m: int = 40) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(d)
    X = np.where(rng.random((m, d)) < 0.3, rng.integers(1, 6, (m, d)), 0).astype(float)
    return X, rng.integers(1, 6, m).astype(float)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [6, 90])
@pytest.mark.parametrize("learner", [MPRank(3.0), MPRank(3.0, ridge="fixed", growth=0.2)])
def test_mprank_solves_the_same_system(learner: MPRank, d: int, kind: Any) -> None:
    X, y = problem(d)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    offset = np.linspace(-1.0, 1.0, len(y))
    for given in ({}, {"offset": offset}, {"sample_weight": weights, "offset": offset}):
        scores = learner.fit(X, y, **given).decision_function(X)
        value = learner.objective_
        learner.fit(kind(X), y, **given)
        np.testing.assert_allclose(learner.decision_function(kind(X)), scores, atol=1e-9)
        np.testing.assert_allclose(learner.decision_function(X), scores, atol=1e-9)
        assert learner.objective_ == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("d", [6, 90])
@pytest.mark.parametrize("learner", [SVRank(20.0), SVRank(20.0, power=2), RankSVM(0.01)])
def test_pair_losses_reach_the_same_minimum(learner: Any, d: int) -> None:
    X, y = problem(d)
    learner.set_params(tol=1e-7)
    dense = learner.fit(X, y).objective_
    for given in ({}, {"sample_weight": np.ones(len(y))}):
        filled = learner.fit(sparse.csr_array(X), y, **given)
        assert filled.converged_
        assert filled.objective_ == pytest.approx(dense, rel=1e-6)
        np.testing.assert_allclose(
            filled.decision_function(sparse.csr_array(X)), filled.decision_function(X)
        )
    if learner.on_rating_scale:
        assert filled.decision_function(X).mean() == pytest.approx(y.mean())


@pytest.mark.parametrize(
    "learner",
    [PRank(5), PRank(5, readout="averaged"), PRank(5, kernel="poly"), PRank(5, update="romma"),
     WidrowHoff(5, eta=1e-3), MulticlassPerceptron(5), OAP(5, n_members=3)],
)  # fmt: skip
def test_online_learners_go_row_by_row(learner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = problem(7, 100)
    monkeypatch.setattr("spark_rank.learners.sparse._VALUES_AT_ONCE", 7 * 13)  # several parts
    learner.fit(X, y)
    scores, ranks, curve = learner.decision_function(X), learner.predict(X), learner.online_loss_
    learner.fit(sparse.csr_array(X), y)
    assert np.array_equal(learner.decision_function(sparse.csr_array(X)), scores)
    assert np.array_equal(learner.predict(sparse.csr_array(X)), ranks)
    assert np.array_equal(learner.online_loss_, curve)
    assert learner.predict(sparse.csr_array((0, 7))).shape == (0,)


def test_baselines_need_only_the_shape() -> None:
    X, y = problem(3)
    model = ConstantScorer().fit(sparse.csr_array(X), y)
    assert np.array_equal(model.predict(sparse.csr_array(X)), np.full(len(y), y.mean()))


def test_what_needs_all_values_says_so() -> None:
    X, y = problem(4)
    rows = sparse.csr_array(X)
    for learner in (MPRank(kernel="rbf"), SVRank(kernel="poly"), RankBoost(3)):
        with pytest.raises(InvalidDataError, match=r"sparse.*give X.toarray\(\)"):
            learner.fit(rows, y)
    with pytest.raises(InvalidParameterError, match="sparse"):
        MPRank(solver="online").fit(rows, y)
    with pytest.raises(InvalidDataError, match="NaN"):
        MPRank().fit(sparse.csr_array(np.array([[np.nan, 1.0], [0.0, 1.0]])), [1.0, 2.0])
    with pytest.raises(InvalidDataError, match="X has 3 features"):
        MPRank().fit(rows, y).decision_function(sparse.csr_array(X[:, :3]))
    with pytest.raises(InvalidDataError, match="X has 3 features"):
        PRank(5).fit(rows, y).predict(sparse.csr_array(X[:, :3]))


def test_a_sparse_model_has_no_zeros_filled_in() -> None:
    """200,000 features of 300 examples are 480 MB when dense."""
    rows = sparse.random_array((300, 200_000), density=1e-4, rng=np.random.default_rng(0))
    y = np.random.default_rng(1).integers(1, 6, 300).astype(float)
    for learner in (MPRank(5.0), RankSVM(1e-3, tol=1e-2)):
        scores = learner.fit(rows.tocsr(), y).decision_function(rows.tocsr())
        assert np.corrcoef(scores, y)[0, 1] > 0.9
