"""Rank loss, exact ranks, and the way from scores to ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import accuracy_score, mean_absolute_error

from spark_rank.metrics import exact_rank_rate, nearest_ranks, rank_loss

ranks = st.integers(1, 40).flatmap(
    lambda m: st.tuples(
        *[st.lists(st.integers(1, 5), min_size=m, max_size=m) for _ in range(2)],
    )
)
FIFTHS = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


@given(ranks)
def test_they_are_the_means(pair: tuple[list[int], list[int]]) -> None:
    predicted, true = pair
    assert_allclose(rank_loss(predicted, true), mean_absolute_error(true, predicted))
    assert_allclose(exact_rank_rate(predicted, true), accuracy_score(true, predicted))
    assert rank_loss(predicted, true) == rank_loss(true, predicted)


@given(
    st.lists(st.integers(-10, 30).map(lambda n: n / 4), max_size=30),
    st.lists(st.integers(-4, 12).map(lambda n: n / 2), min_size=1, max_size=9, unique=True),
)
def test_the_nearest_level_and_of_two_the_higher(values: list[float], levels: list[float]) -> None:
    scale = sorted(levels)
    expected = [min(range(len(scale)), key=lambda r: (abs(v - scale[r]), -r)) + 1 for v in values]
    assert nearest_ranks(values, scale).tolist() == expected


def test_levels_stand_for_themselves() -> None:
    assert nearest_ranks(FIFTHS, FIFTHS).tolist() == [1, 2, 3, 4, 5, 6]
    assert nearest_ranks([0.3, 0.7, 0.5, -9.0, 9.0], FIFTHS).tolist() == [2, 5, 4, 1, 6]


def test_undefined_and_refused() -> None:
    assert rank_loss([], []) is None
    assert exact_rank_rate([], []) is None
    assert rank_loss([2], [2]) == 0.0
    with pytest.raises(ValueError, match="whole numbers"):
        rank_loss([1.5], [1])
    with pytest.raises(ValueError, match="one length"):
        exact_rank_rate([1], [1, 2])
    for levels, message in (([], "one or more"), ([1.0, 1.0], "ascend"), ([np.nan], "finite")):
        with pytest.raises(ValueError, match=message):
            nearest_ranks([1.0], levels)
    with pytest.raises(ValueError, match="finite"):
        nearest_ranks([np.nan], [1.0])
