"""Similar items: the cosines of features around the average item, by definition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import ArrayLike

from spark_rank.errors import ConfigError
from spark_rank.features.files import ItemFeatures
from spark_rank.features.similar import Directions


def features_of(matrix: ArrayLike, ids: list[str] | None = None) -> ItemFeatures:
    rows = np.array(matrix, dtype=np.float32)
    names = ids or [f"i{number:03d}" for number in range(len(rows))]
    return ItemFeatures(
        rows, np.zeros(len(rows)), np.empty((0, rows.shape[1]), np.float32), pa.array(names)
    )


def test_the_most_similar_come_first() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(30, 4)).astype(np.float32)
    ids = [f"i{number:03d}" for number in rng.permutation(30)]
    found = Directions(features_of(matrix, ids))
    centred = matrix - matrix.astype(np.float64).mean(axis=0)
    for item in (3, 0, 29):
        lengths = np.linalg.norm(centred, axis=1) * np.linalg.norm(centred[item])
        expected = centred @ centred[item] / lengths
        expected[item] = -np.inf
        others, cosines = found.most_similar(item, 5)
        assert others.tolist() == np.argsort(-expected)[:5].tolist()
        np.testing.assert_allclose(cosines, expected[others], rtol=1e-6)


def test_what_all_items_share_makes_none_alike() -> None:
    matrix = np.random.default_rng(1).normal(size=(20, 3))
    shifted = np.column_stack([matrix, np.full(20, 100.0)])
    for item in range(20):
        alone, _ = Directions(features_of(matrix)).most_similar(item, 19)
        beside, _ = Directions(features_of(shifted)).most_similar(item, 19)
        assert alone.tolist() == beside.tolist()


def test_there_are_no_more_others_than_items() -> None:
    numbers, cosines = Directions(features_of(np.eye(3))).most_similar(1, 10)
    assert numbers.tolist() == [0, 2]
    np.testing.assert_allclose(cosines, -0.5)
    assert len(Directions(features_of([[1, 1]])).most_similar(0, 10)[0]) == 0


def test_equally_similar_items_go_by_their_ids() -> None:
    rows = np.repeat(np.random.default_rng(2).normal(size=(2, 7)), 13, axis=0)
    ids = [f"i{number:02d}" for number in np.random.default_rng(3).permutation(26)]
    numbers, _ = Directions(features_of(rows, ids)).most_similar(0, 12)
    assert [ids[number] for number in numbers] == sorted(ids[1:13])


def test_average_and_unknown_items_are_like_nothing() -> None:
    found = Directions(features_of([[1, 1], [2, 2], [3, 3], [0, 0]]))
    for item in (1, 3):
        assert len(found.most_similar(item, 2)[0]) == 0
    numbers, cosines = found.most_similar(0, 3)
    assert numbers.tolist() == [2]
    np.testing.assert_allclose(cosines, -1.0)


def test_items_without_features_are_refused() -> None:
    with pytest.raises(ConfigError, match="no features that all users share"):
        Directions(features_of(np.empty((3, 0))))
