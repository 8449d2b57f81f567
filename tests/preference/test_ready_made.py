"""Ready-made preferences beside their definitions, and OAP and scikit-learn as their sources."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from spark_rank.learners import OAP
from spark_rank.preference import (
    InvalidMajoritiesError,
    InvalidPreferenceError,
    InvalidSettingError,
    Preference,
    degree_rank,
    from_classifier,
    from_majorities,
    from_matrix,
    from_scores,
    from_votes,
)

RNG = np.random.default_rng(12)
X = RNG.normal(size=(9, 3))
SCORES = np.array([2.0, 2.0, -1.0, 0.5, 7.0, 0.5, 3.0, -4.0, 0.0])
MEMBERS = RNG.integers(0, 4, (5, 9)).astype(float)


def classifier(kind: type) -> object:
    """Learn from all differences of X which of two rows has the larger first feature."""
    gaps = (X[:, None] - X).reshape(-1, 3)
    return kind().fit(gaps[gaps[:, 0] != 0], gaps[gaps[:, 0] != 0][:, 0] > 0)


PREFERENCES = {
    "hard": from_scores(SCORES),
    "logistic": from_scores(SCORES, temperature=0.7),
    "votes": from_votes(MEMBERS),
    "probability": from_classifier(classifier(LogisticRegression), X),
    "decision": from_classifier(classifier(LinearSVC), X),
    "majorities": from_majorities(RNG.integers(0, 5, (9, 9))),
}


@pytest.mark.parametrize("prefer", PREFERENCES.values(), ids=PREFERENCES.keys())
def test_two_directions_sum_to_one_and_the_vector_is_the_pairs(prefer: Preference) -> None:
    others = np.arange(9)
    for u in range(9):
        ahead = prefer.against(u, others)
        pairs = [prefer(u, v) for v in range(9)]
        assert_allclose(ahead, pairs, atol=1e-12)
        assert_allclose(ahead + [prefer(v, u) for v in range(9)], 1.0, atol=1e-12)
        assert ((ahead >= 0) & (ahead <= 1)).all()
        assert prefer.against(u, others[:0]).shape == (0,)


def test_scores_hard_and_logistic() -> None:
    hard, soft = PREFERENCES["hard"], PREFERENCES["logistic"]
    for u in range(9):
        for v in range(9):
            gap = SCORES[u] - SCORES[v]
            assert hard(u, v) == (1.0 if gap > 0 else 0.5 if gap == 0 else 0.0)
            assert_allclose(soft(u, v), 1.0 / (1.0 + np.exp(-gap / 0.7)), rtol=1e-12)


def test_votes_are_shares_of_members() -> None:
    for u in range(9):
        for v in range(9):
            rivals = zip(MEMBERS[:, u], MEMBERS[:, v], strict=True)
            share = np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a, b in rivals])
            assert_allclose(PREFERENCES["votes"](u, v), share, atol=1e-12)


def test_votes_of_an_oap_ensemble_rank_as_its_members() -> None:
    features = np.random.default_rng(3).uniform(size=(400, 2))
    ranks = 1 + (features[:, 0] > 0.3) + (features[:, 0] > 0.7)
    ensemble = OAP(3, n_members=11, tau=0.5).fit(features, ranks)
    items = np.array([[0.1, 0.5], [0.5, 0.5], [0.9, 0.5]])
    prefer = from_votes(ensemble.member_coef_ @ items.T)
    assert degree_rank(range(3), prefer) == [2, 1, 0]


def test_a_classifier_ranks_by_what_it_learned() -> None:
    by_feature = np.argsort(-X[:, 0]).tolist()
    model = classifier(LogisticRegression)
    weights = model.coef_[0]
    by_model = np.argsort(-(X @ weights)).tolist()
    assert degree_rank(range(9), PREFERENCES["decision"]) == by_feature
    hard = from_scores(X @ weights)
    soft = PREFERENCES["probability"]
    assert degree_rank(range(9), hard) == by_model
    for u in range(9):
        # the intercept cancels in the antisymmetric form: ½ is crossed where the score is
        assert (
            (soft.against(u, np.arange(9)) > 0.5) == (hard.against(u, np.arange(9)) > 0.5)
        ).all()


def test_a_classifiers_bias_towards_the_first_place_is_removed() -> None:
    class AlwaysFirst:
        def predict_proba(self, rows: np.ndarray) -> np.ndarray:
            return np.tile([0.1, 0.9], (len(rows), 1))

    assert_allclose(from_classifier(AlwaysFirst(), X).against(0, np.arange(9)), 0.5)


def test_majorities_are_won_lost_or_drawn() -> None:
    prefer = from_majorities([[9, 2, 1], [1, 9, 4], [1, 5, 9]])
    assert [prefer(0, 1), prefer(1, 0), prefer(0, 2), prefer(2, 1)] == [1.0, 0.0, 0.5, 1.0]


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InvalidPreferenceError, match="NaN"):
        from_scores([1.0, float("nan")])
    with pytest.raises(InvalidSettingError, match="temperature"):
        from_scores([1.0], temperature=0.0)
    with pytest.raises(InvalidPreferenceError, match="no members"):
        from_votes(np.empty((0, 4)))
    with pytest.raises(InvalidPreferenceError, match="neither"):
        from_classifier(object(), X)
    with pytest.raises(InvalidPreferenceError, match="must be 1"):
        from_matrix([[0.5, 0.9], [0.9, 0.5]])
    with pytest.raises(InvalidPreferenceError, match="lie in"):
        from_matrix([[0.5, 1.5], [-0.5, 0.5]])
    with pytest.raises(InvalidPreferenceError, match="square"):
        from_matrix([[0.5, 1.0]])
    with pytest.raises(InvalidMajoritiesError, match="not negative"):
        from_majorities([[0, -1], [1, 0]])
