"""Landmark features, against the kernel itself and against a kernel learner."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spark_rank.learners import MPRank, PRank
from spark_rank.learners.errors import LearnerError
from spark_rank.learners.kernels import Kernel
from spark_rank.sequences.files import TrialPart
from spark_rank.sequences.landmarks import landmark_features
from spark_rank.users.fitting import LandmarkScorer, Limits, Sample, fit
from spark_rank.users.landmarks import landmark_root
from spark_rank.users.specs import LearnerSpec

RNG = np.random.default_rng(4)
X = RNG.normal(size=(90, 3))
KERNELS = [Kernel("rbf", 0.4), Kernel("poly", 0.5, 3, 1.0)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_with_all_examples_products_are_the_kernel(kernel: Kernel, tmp_path: Path) -> None:
    # the poly kernel's space has 20 dimensions: more landmarks than that span it too
    part = TrialPart(1, 0, 60, 30)
    file, _ = landmark_features(X, [part], kernel, 60, 0, tmp_path)
    mapped = np.load(tmp_path / file.name)
    assert mapped.shape == (90, 60)
    np.testing.assert_allclose(mapped[:60] @ mapped.T, kernel(X[:60], X), rtol=1e-5, atol=1e-5)
    ranks = 1 + (X[:, 0] * X[:, 1] > 0)
    linear = PRank(2).fit(mapped[:60], ranks[:60])
    options = {"kernel": kernel.name, "gamma": kernel.gamma}
    exact = PRank(2, degree=3, coef0=1.0, **options).fit(X[:60], ranks[:60])
    scores = exact.decision_function(X)
    np.testing.assert_allclose(linear.decision_function(mapped), scores, rtol=1e-4, atol=1e-4)


def test_a_budget_projects_onto_some_training_examples_of_each_trial(tmp_path: Path) -> None:
    parts = [TrialPart(1, 0, 30, 10), TrialPart(2, 40, 40, 10)]
    kernel = KERNELS[0]
    file, supports = landmark_features(X, parts, kernel, 7, 3, tmp_path)
    mapped = np.load(tmp_path / file.name)
    assert mapped.shape == (90, 7)
    for part in parts:
        rows = slice(part.start, part.start + part.n_train + part.n_test)
        norms = (mapped[rows] ** 2).sum(axis=1)
        assert (norms <= 1.0 + 1e-9).all()  # of K(x, x) = 1 a part is projected away
        on_landmarks = np.flatnonzero(norms > 1.0 - 1e-9)
        assert len(on_landmarks) == 7
        assert on_landmarks.max() < part.n_train
    assert landmark_features(X, parts, kernel, 7, 3, tmp_path) == (file, supports)


def test_landmarks_that_are_alike_count_once() -> None:
    twice = np.concatenate([X[:5], X[:5]])
    assert landmark_root(KERNELS[0], twice).shape == (10, 5)
    with pytest.raises(LearnerError, match="scale the features down"):
        landmark_root(Kernel("poly", 1.0, 3, 1.0), X[:3] * 1e200)


@pytest.mark.parametrize("shift", [0.0, 1e4, 1e7])
@pytest.mark.parametrize("budget", [12, 39])
def test_no_shift_of_the_features_moves_a_model_on_landmarks(budget: int, shift: float) -> None:
    """A kernel with a linear part sees differences only, where a constant is free."""
    rng = np.random.default_rng(7)
    rows, y = np.round(16.0 * rng.normal(size=(40, 3))) / 16.0, rng.integers(1, 6, 40).astype(float)
    spec = LearnerSpec("it", "mprank", False, {"C": 5.0, "kernel": "linear+rbf", "gamma": 0.3})
    limits = Limits(None, max_kernel_ratings=39, landmarks=budget, folds=3)
    near = fit(spec, None, Sample(rows, y, None), limits)
    far = fit(spec, None, Sample(rows + shift, y, None), limits)
    assert isinstance(far, LandmarkScorer)
    assert_allclose(far.scores(rows + shift, None), near.scores(rows, None), atol=1e-6)
    if budget == 39:
        exact = MPRank(5.0, kernel="linear+rbf", gamma=0.3).fit(rows, y)
        assert_allclose(near.scores(rows, None), exact.decision_function(rows), atol=0.1)


def test_a_model_on_landmarks_is_the_sum_that_its_row_is_scored_by() -> None:
    y = RNG.integers(1, 6, len(X)).astype(float)
    spec = LearnerSpec("it", "mprank", False, {"kernel": "linear+rbf", "gamma": 0.3})
    limits = Limits(None, max_kernel_ratings=50, landmarks=20, folds=3)
    model = fit(spec, None, Sample(X + 3.0, y, None), limits)
    assert isinstance(model, LandmarkScorer)
    assert abs(model.dual.sum()) < 1e-9 * np.abs(model.dual).sum()
    values = model.kernel(X + 3.0, model.landmarks) @ model.dual + model.learner.intercept_
    assert_allclose(model.scores(X + 3.0, None), values, atol=1e-9)
