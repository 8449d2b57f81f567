"""Metrics of lists against loops over places and pairs, and against scikit-learn."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from spark_rank.metrics import (
    HIT_METRICS,
    coverage,
    genre_divergence,
    gini,
    hit_metrics,
    intra_list_diversity,
)

RNG = np.random.default_rng(5)


def naive(hits: list[bool], relevant: int) -> dict[str, float]:
    size, found = len(hits), sum(hits)
    first = next((place for place, hit in enumerate(hits, 1) if hit), math.inf)
    precisions = [sum(hits[:place]) / place for place, hit in enumerate(hits, 1) if hit]
    gains = [1 / math.log2(1 + place) for place in range(1, size + 1)]
    return {
        "hit_rate": float(found > 0),
        "precision": found / size,
        "recall": found / relevant,
        "ndcg": sum(g for g, h in zip(gains, hits, strict=True) if h) / sum(gains[:relevant]),
        "reciprocal_rank": 1 / first,
        "average_precision": sum(precisions) / min(relevant, size),
    }


def test_metrics_of_hits_are_those_of_a_loop() -> None:
    hits = RNG.random((200, 7)) < 0.3
    relevant = hits.sum(axis=1) + RNG.integers(0, 9, 200)
    found = hit_metrics(hits, relevant)
    assert tuple(found) == HIT_METRICS
    assert (relevant == 0).any()
    for user in range(200):
        if relevant[user] == 0:
            assert all(np.isnan(values[user]) for values in found.values())
            continue
        for name, value in naive(hits[user].tolist(), int(relevant[user])).items():
            assert found[name][user] == pytest.approx(value, abs=1e-15), name


def test_ndcg_is_scikit_learns_over_all_items() -> None:
    scores, wanted = RNG.random((30, 50)), RNG.random((30, 50)) < 0.2
    order = np.argsort(-scores, axis=1)[:, :10]
    hits = np.take_along_axis(wanted, order, axis=1)
    expected = [ndcg_score(wanted[[u]], scores[[u]], k=10) for u in range(30)]
    assert hit_metrics(hits, wanted.sum(axis=1))["ndcg"] == pytest.approx(expected)


def test_gini_is_half_the_relative_mean_difference() -> None:
    exposures = RNG.integers(0, 40, 25)
    pairs = sum(abs(int(a) - int(b)) for a, b in itertools.product(exposures, repeat=2))
    assert gini(exposures) == pytest.approx(pairs / (2 * 25**2 * exposures.mean()))
    assert gini(np.array([4, 4, 4])) == 0.0
    assert gini(np.array([0, 0, 9, 0])) == pytest.approx(0.75)
    assert math.isnan(gini(np.zeros(3, dtype=np.int64)))
    assert coverage(np.array([0, 2, 0, 1])) == 0.5


def test_diversity_is_the_mean_over_pairs_of_listed_items() -> None:
    vectors = RNG.normal(size=(6, 5, 3))
    units = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    listed = RNG.random((6, 5)) < 0.7
    listed[0] = [True, False, False, False, False]
    found = intra_list_diversity(units, listed)
    assert np.isnan(found[0])
    for user in range(1, 6):
        pairs = itertools.combinations(np.flatnonzero(listed[user]), 2)
        expected = 1 - np.mean([units[user, a] @ units[user, b] for a, b in pairs])
        assert found[user] == pytest.approx(expected)


def test_genres_diverge_where_the_list_lacks_what_was_liked() -> None:
    wanted = np.array([[2.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    shown = np.array([[5.0, 5.0, 0.0], [0.0, 3.0, 0.0], [1.0, 0.0, 0.0]])
    found = genre_divergence(wanted, shown)
    assert found[0] == pytest.approx(0.0)
    assert found[1] == pytest.approx(math.log(1 / 0.01))
    assert np.isnan(found[2])
