"""Similar items: the cosines of centred features, by definition."""

from __future__ import annotations

import numpy as np
import pytest

from spark_rank.features import similar
from spark_rank.features.similar import similar_items


@pytest.mark.parametrize("at_once", [1, 1 << 22])
def test_the_most_similar_come_first(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(similar, "_SCORES_AT_ONCE", at_once)
    matrix = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    asked = np.array([3, 0, 29])
    numbers, cosines = similar_items(matrix, asked, 5)
    centred = matrix - matrix.astype(np.float64).mean(axis=0)
    for item, others, values in zip(asked, numbers, cosines, strict=True):
        lengths = np.linalg.norm(centred, axis=1) * np.linalg.norm(centred[item])
        expected = centred @ centred[item] / lengths
        expected[item] = -np.inf
        assert others.tolist() == np.argsort(-expected, kind="stable")[:5].tolist()
        np.testing.assert_allclose(values, expected[others], rtol=1e-6)


def test_there_are_no_more_others_than_items() -> None:
    numbers, cosines = similar_items(np.eye(3, dtype=np.float32), np.array([1]), 10)
    assert numbers.tolist() == [[0, 2]]
    np.testing.assert_allclose(cosines, -0.5)
    alone, _ = similar_items(np.ones((1, 2), dtype=np.float32), np.array([0]), 10)
    assert alone.shape == (1, 0)


def test_an_average_item_is_like_nothing() -> None:
    matrix = np.array([[1, 1], [2, 2], [3, 3]], dtype=np.float32)
    _, cosines = similar_items(matrix, np.array([1]), 2)
    assert cosines.tolist() == [[0.0, 0.0]]
