"""Losses beside the printed double sums; weights beside their axioms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score
from twins import loss_twin, tournaments

from spark_rank.preference import (
    Counted,
    InvalidRankingError,
    InvalidSettingError,
    bipartite,
    from_matrix,
    from_scores,
    k_partite,
    kemeny,
    preference_loss,
    ranking_loss,
    top_k,
)

WEIGHTS = [kemeny, top_k(1), top_k(3), bipartite(2), k_partite((1, 3)), k_partite((2, 4, 5))]
each_weight = pytest.mark.parametrize("weight", WEIGHTS, ids=repr)

# places 1..n with ties: levels, turned into 1 + number of items above
levels = st.lists(st.integers(0, 4), min_size=2, max_size=9)


def places_of(values: list[int]) -> list[int]:
    return [1 + sum(other > value for other in values) for value in values]


@each_weight
def test_weights_obey_the_axioms(weight) -> None:
    for i, j, k in itertools.product(range(1, 9), repeat=3):
        assert weight(i, j) == weight(j, i)
        assert weight(i, j) <= weight(i, k) + weight(k, j)
        if i < j < k:
            assert max(weight(i, j), weight(j, k)) <= weight(i, k)


def test_weights_are_the_lectures() -> None:
    for i, j in itertools.permutations(range(1, 9), 2):
        assert kemeny(i, j) == 1
        assert top_k(3)(i, j) == (i <= 3 or j <= 3)
        assert bipartite(3)(i, j) == ((i <= 3 < j) or (j <= 3 < i))
        assert k_partite((3,))(i, j) == bipartite(3)(i, j)
        between = [c for c in (2, 5) if min(i, j) <= c < max(i, j)]
        assert k_partite((2, 5))(i, j) == bool(between)


@each_weight
@given(values=levels, seed=st.integers(0, 999))
def test_ranking_loss_is_the_double_sum(weight, values: list[int], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(values)).tolist()
    at = {item: position for position, item in enumerate(order)}
    expected = loss_twin(lambda u, v: float(at[u] < at[v]), places_of(values), weight)
    truth = dict(enumerate(values))
    assert_allclose(ranking_loss(order, truth, weight), expected, atol=1e-12)
    slow = ranking_loss(order, truth, weight.__call__)  # a plain function has no parts
    assert not hasattr(weight.__call__, "parts")
    assert_allclose(slow, expected, atol=1e-12)


@each_weight
@given(h=tournaments(at_least=2), data=st.data())
def test_preference_loss_is_the_double_sum(weight, h: np.ndarray, data: st.DataObject) -> None:
    n = len(h)
    values = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    expected = loss_twin(lambda u, v: h[u, v], places_of(values), weight)
    prefer = Counted(from_matrix(h))
    assert_allclose(preference_loss(prefer, dict(enumerate(values)), weight), expected, atol=1e-12)
    assert prefer.calls <= n * (n - 1) // 2


@given(levels, st.integers(0, 999))
def test_an_order_is_a_preference_with_the_same_loss(values: list[int], seed: int) -> None:
    scores = np.random.default_rng(seed).permutation(len(values))
    order = np.argsort(-scores).tolist()
    truth = dict(enumerate(values))
    assert_allclose(ranking_loss(order, truth), preference_loss(from_scores(scores), truth))


@given(st.integers(0, 999))
def test_bipartite_loss_is_one_minus_auc_up_to_the_number_of_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.permutation([0] * 7 + [1] * 5)
    scores = rng.integers(0, 6, 12)
    expected = (1.0 - roc_auc_score(labels, scores)) * 35 / 66
    truth = [set(np.flatnonzero(labels == 1).tolist()), set(np.flatnonzero(labels == 0).tolist())]
    assert_allclose(preference_loss(from_scores(scores), truth), expected, atol=1e-12)


def test_truth_forms_agree_and_extremes() -> None:
    grouped, by_level = ["a", {"b", "c"}, "d"], {"d": 1.0, "b": 2.5, "a": 9.0, "c": 2.5}
    for order in itertools.permutations("abcd"):
        assert ranking_loss(order, grouped) == ranking_loss(order, by_level)
    assert ranking_loss("abcd", "abcd") == 0.0
    assert ranking_loss("dcba", "abcd") == 1.0
    assert ranking_loss("dcba", grouped) == 5 / 6, "a tied pair counts for n(n−1) only"
    assert ranking_loss("a", "a") is None
    assert preference_loss(lambda u, v: 1.0, []) is None


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InvalidRankingError, match="exactly once"):
        ranking_loss("aab", "abc")
    with pytest.raises(InvalidRankingError, match="not in the order"):
        ranking_loss("abd", "abc")
    with pytest.raises(InvalidRankingError, match="occurs twice"):
        ranking_loss("ab", ["a", {"a", "b"}])
    with pytest.raises(InvalidRankingError, match="no level"):
        ranking_loss("ab", {"a": float("nan"), "b": 1.0})
    for make in (lambda: top_k(0), lambda: bipartite(-1), lambda: k_partite((3, 2))):
        with pytest.raises(InvalidSettingError, match="ascending"):
            make()
