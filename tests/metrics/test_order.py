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


@pytest.mark.parametrize("shape", ["rising", "falling", "organ pipe", "two values"])
def test_long_vectors_of_any_shape(shape: str) -> None:
    m = 5_000
    rising = np.arange(float(m))
    scores = {
        "rising": rising,
        "falling": -rising,
        "organ pipe": np.minimum(rising, m - rising),
        "two values": rising % 2,
    }[shape]
    assert ranking(scores).tolist() == np.argsort(-scores, kind="stable").tolist()


def test_ids_must_fit() -> None:
    with pytest.raises(ValueError, match="one item id per score"):
        ranking(np.array([1.0, 2.0]), [7])
