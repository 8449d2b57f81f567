"""The sort and the tie rule beside Python's stable sort."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.metrics import ranking
from spark_rank.metrics.order import sort_descending

values = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]) | st.floats(-5, 5), max_size=90)


@given(values)
def test_equal_scores_keep_their_places(scores: list[float]) -> None:
    expected = sorted(range(len(scores)), key=lambda i: -scores[i])
    ordered, order = sort_descending(np.array(scores))
    assert order.tolist() == expected
    assert ordered.tolist() == [scores[i] for i in expected]


@given(values, st.randoms())
def test_ids_decide_ties(scores: list[float], random: Random) -> None:
    ids = list(range(len(scores)))
    random.shuffle(ids)
    expected = sorted(range(len(scores)), key=lambda i: (-scores[i], ids[i]))
    assert ranking(np.array(scores), ids).tolist() == expected
    names = [f"item{i:03}" for i in ids]
    assert ranking(np.array(scores), names).tolist() == expected


SHAPES = {
    "rising": np.arange(5_000.0),
    "falling": -np.arange(5_000.0),
    "organ pipe": np.minimum(np.arange(5_000.0), np.arange(5_000.0, 0.0, -1.0)),
    "two values": np.arange(5_000.0) % 2,
    "spread": np.random.default_rng(0).normal(size=5_000),
    "crowded beside one far off": np.append(np.random.default_rng(1).normal(size=5_000), 1e12),
    "of all magnitudes": np.exp(np.random.default_rng(2).uniform(-700, 700, 5_000)),
    "as small as numbers get": np.random.default_rng(3).integers(0, 99, 500) * 5e-324,
    "too far apart for a difference": np.array([1.0, -1.7e308, 0.0, 1.7e308, 0.0, -1.7e308]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_long_vectors_of_any_shape(shape: str) -> None:
    scores = SHAPES[shape]
    assert ranking(scores).tolist() == np.argsort(-scores, kind="stable").tolist()


@given(st.lists(st.floats(allow_nan=False), max_size=60))
def test_any_numbers(scores: list[float]) -> None:
    expected = sorted(range(len(scores)), key=lambda i: -scores[i])
    assert sort_descending(np.array(scores))[1].tolist() == expected


def test_ids_must_fit() -> None:
    with pytest.raises(ValueError, match="one item id per score"):
        ranking(np.array([1.0, 2.0]), [7])
