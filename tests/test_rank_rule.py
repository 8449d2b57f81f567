"""A number half way between two ranks goes up, wherever numbers become ranks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.compiled import njit
from spark_rank.learners import OAP, PRank, WidrowHoff
from spark_rank.metrics import batch_metrics, nearest_ranks
from spark_rank.rank_rule import (
    cuts_between,
    interval_of,
    nearest_rank,
    nearest_whole,
    predicted_rank,
)
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.stored_models import RankRule


@njit
def compiled_ranks(values: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    return np.array([predicted_rank(value, cuts) for value in values])


def by_definition(value: float, levels: list[float]) -> int:
    """Return the rank of the nearest level, of two as near the higher, in exact arithmetic."""
    return max(range(len(levels)),
               key=lambda r: (-abs(Fraction(value) - Fraction(levels[r])), r)) + 1  # fmt: skip


@given(
    st.lists(st.integers(-10, 90).map(lambda n: n / 4), min_size=1, max_size=30),
    st.lists(st.integers(-4, 40).map(lambda n: n / 2), min_size=2, max_size=24, unique=True),
)
def test_every_way_to_a_rank_is_the_same(values: list[float], given_levels: list[float]) -> None:
    levels = sorted(given_levels)
    expected = [by_definition(value, levels) for value in values]
    scores, cuts = np.array(values), cuts_between(levels)
    assert nearest_ranks(values, levels).tolist() == expected
    assert RankScale(tuple(levels)).ranks(scores).tolist() == expected
    assert (interval_of(scores, cuts) + 1).tolist() == expected
    assert compiled_ranks(scores, cuts).tolist() == expected
    assert RankRule(cuts).ranks(scores).tolist() == expected
    for value, rank in zip(values, expected, strict=True):
        found = batch_metrics(
            [value, levels[0]], [levels[rank - 1], levels[0]], [0, 2], on_rating_scale=[True],
            top=1, relevant_from=1.0, epsilon=0.0, levels=levels,
        )  # fmt: skip
        assert found["exact_rank"].tolist() == [1.0]


@given(st.lists(st.integers(2, 10).map(lambda n: n / 2), min_size=1, max_size=30))
def test_means_of_ranks_follow_it(means: list[float]) -> None:
    expected = [by_definition(mean, [1.0, 2.0, 3.0, 4.0, 5.0]) for mean in means]
    halves = np.array([int(2 * mean) for mean in means])
    assert nearest_whole(np.array(means)).tolist() == expected
    assert nearest_rank(halves, 2).tolist() == expected
    assert RankRule(None).ranks(np.array(means)).tolist() == expected


def test_learners_follow_it() -> None:
    learner = WidrowHoff(3, eta=1.0).fit([[1.0]], [1])
    assert learner.predict([[1.5], [2.5], [2.4375]]).tolist() == [2, 3, 2]
    voted = PRank(3, readout="voted").fit([[-1.0], [-3.0], [1.0], [-2.0]], [2, 3, 2, 1])
    bagged = OAP(3, combine="bagging", n_members=2).fit([[-1.0], [-3.0], [1.0]], [2, 3, 2])
    for one in (voted, bagged):
        means = one.decision_function(np.linspace(-3, 3, 25)[:, None])
        assert one.predict(np.linspace(-3, 3, 25)[:, None]).tolist() == [
            int(mean + 0.5) for mean in means
        ]


@pytest.mark.parametrize("low", [0.0, 1.0, -1.0, 1e-310, 1.7e308])
def test_neighbours_among_the_floats_stay_apart(low: float) -> None:
    levels = [low, np.nextafter(low, np.inf)]
    assert nearest_ranks(levels, levels).tolist() == [1, 2]


def test_levels_at_the_end_of_the_floats() -> None:
    assert nearest_ranks([-1e308, -1.0, 0.0, 1e308], [-1.7e308, 1.7e308]).tolist() == [1, 1, 2, 2]
