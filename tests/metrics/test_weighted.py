"""Weighted metrics: a weight of two is an item given twice, equal weights change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from spark_rank.metrics import (
    effective_size,
    mean_squared_difference,
    pairwise_misranking,
    weighted_misranking,
    weighted_squared_difference,
)

Array = NDArray[Any]
PAIRS = [(weighted_squared_difference, mean_squared_difference),
         (weighted_misranking, pairwise_misranking)]  # fmt: skip
ITEMS = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(1, 5), st.integers(1, 4)), min_size=2, max_size=25
)


def columns(items: list[tuple[int, int, int]]) -> tuple[Array, Array, Array]:
    scores, ratings, weights = (np.array(column) for column in zip(*items, strict=True))
    return scores / 2.0, ratings.astype(float), weights


@pytest.mark.parametrize(("weighted", "plain"), PAIRS)
@given(items=ITEMS)
def test_whole_weights_are_repeated_items(
    weighted: Any, plain: Any, items: list[tuple[int, int, int]]
) -> None:
    scores, ratings, weights = columns(items)
    expected = plain(np.repeat(scores, weights), np.repeat(ratings, weights))
    for scale in (1.0, 0.1):
        found = weighted(scores, ratings, scale * weights)
        if expected is None or found is None:
            assert found is expected
        else:
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_weights_of_one_over_the_propensity_give_back_what_is_random() -> None:
    rng = np.random.default_rng(0)
    ratings = rng.integers(1, 6, 4000).astype(float)
    scores = ratings + rng.normal(0.0, 1.0 / ratings)  # bad ratings are predicted worse
    propensities = 0.5 ** (5 - ratings)
    chosen = rng.random(4000) < propensities
    truth = mean_squared_difference(scores, ratings)
    assert truth is not None
    naive = mean_squared_difference(scores[chosen], ratings[chosen])
    found = weighted_squared_difference(scores[chosen], ratings[chosen], 1 / propensities[chosen])
    assert naive is not None
    assert found is not None
    assert naive < 0.6 * truth
    assert found == pytest.approx(truth, rel=0.15)


def test_the_effective_size() -> None:
    assert effective_size([3.0, 3.0, 3.0]) == pytest.approx(3.0)
    assert effective_size([1e9, 1.0, 1.0]) == pytest.approx(1.0)
    assert effective_size([2.0, 1.0]) == pytest.approx(9 / 5)
    assert effective_size([]) == 0.0


def test_what_is_undefined_and_what_is_refused() -> None:
    assert weighted_squared_difference([1.0], [2.0], [1.0]) is None
    assert weighted_misranking([1.0, 2.0], [3.0, 3.0], [1.0, 1.0]) is None
    for weights in ([1.0], [1.0, 0.0], [1.0, np.nan]):
        with pytest.raises(ValueError, match="weights must be 2 finite numbers above 0"):
            weighted_misranking([1.0, 2.0], [1.0, 3.0], weights)
