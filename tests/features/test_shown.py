"""Propensities and the curve are found again in ratings that are drawn with known ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spark_rank.data.choices import Choices, by_liking, choose
from spark_rank.errors import InputDataError
from spark_rank.features.factor_model import SampledRatings
from spark_rank.features.shown import (
    _curve,
    _Judged,
    _slope,
    learn_shown,
    propensities,
    shown_ratings,
)
from spark_rank.records.features import ShownFacts

Array = NDArray[Any]
FACTS = ShownFacts(0.7, 3.0, (0.1, 0.4, 0.2), 1.5, 4.5, 100, 40.0)


def world(strength: float) -> Choices:
    """Draw complete ratings of 500 users from two factors, and choose a twentieth of them."""
    rng = np.random.default_rng(5)
    levels, bias = rng.normal(0, 0.4, (500, 1)), rng.normal(0, 0.5, (1, 300))
    taste, factors = rng.normal(0, 0.7, (500, 2)), rng.normal(0, 1, (300, 2))
    ratings = 3 + levels + bias + taste @ factors.T + rng.normal(0, 0.8, (500, 300))
    propensities_ = by_liking(ratings, strength, 0.05)
    return choose(ratings, propensities_, seed=2, shown=10, held_out=0.0)


def sampled(drawn: Choices) -> SampledRatings:
    """Return the training ratings; those of a user in a random order, as in a block."""
    rng = np.random.default_rng(0)
    items = [rng.permutation(np.flatnonzero(own)) for own in drawn.training]
    ends = np.concatenate([[0], np.cumsum([len(own) for own in items])]).astype(np.int64)
    ratings = [drawn.ratings[user, own] for user, own in enumerate(items)]
    flat = np.concatenate(items).astype(np.int32)
    return SampledRatings(flat, np.concatenate(ratings), ends, drawn.ratings.shape[1])


@pytest.mark.parametrize("strength", [0.0, 0.4, 0.8])
def test_the_slope_of_propensities_is_found_again(strength: float) -> None:
    drawn = world(strength)
    found = learn_shown(sampled(drawn), rank=2, rounds=10, seed=0, choices=True)
    assert found.liking == pytest.approx(strength / drawn.ratings.std(), abs=0.1)
    # with normal noise of variance 0.64, what is shown at random is rated 0.64 · liking lower
    lower = found.middle - float(shown_ratings(found, found.middle))
    assert lower > 0.3 * found.liking if strength else abs(lower) < 0.1
    assert found.effective <= found.ratings
    again = learn_shown(sampled(drawn), rank=2, rounds=10, seed=0, choices=True)
    assert again == found


def test_propensities_are_those_of_the_facts() -> None:
    one, two = propensities(FACTS, [2.0, 4.0], [9, 9])
    assert two / one == pytest.approx(np.exp(2 * 0.7))
    few, many = propensities(FACTS, 3.0, [4, 16])
    assert many / few == pytest.approx(4.0)
    assert propensities(FACTS, 3.0, 0) == pytest.approx(1.0)


def test_the_curve_goes_on_straight_beyond_its_ends() -> None:
    inside = shown_ratings(FACTS, [1.5, 3.0, 4.5])
    assert inside == pytest.approx([0.1 * s * s + 0.4 * s + 0.2 for s in (1.5, 3.0, 4.5)])
    low, high = np.diff(shown_ratings(FACTS, [-1.0, 0.0])), np.diff(shown_ratings(FACTS, [6, 7]))
    assert low == pytest.approx([0.2 * 1.5 + 0.4])
    assert high == pytest.approx([0.2 * 4.5 + 0.4])
    many = np.linspace(-5, 10, 400)
    assert (np.diff(shown_ratings(FACTS, many)) > 0).all()


def test_the_curve_is_a_weighted_parabola_that_rises() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(1, 5, 3000)
    ratings = 0.1 * scores**2 + 0.3 * scores + rng.normal(0, 0.1, 3000)
    weights = rng.uniform(0.1, 3, 3000)
    curve, low, high = _curve(scores, ratings, weights)
    expected = np.polyfit(scores, ratings, 2, w=np.sqrt(weights))
    assert curve == pytest.approx(expected, abs=1e-6)
    assert (low, high) == pytest.approx(tuple(np.quantile(scores, (0.01, 0.99))))
    # one that would fall is a line, and a line that would fall is a shift
    hill, *_ = _curve(scores, -((scores - 3.5) ** 2), weights)
    assert hill[0] == 0.0
    assert hill[1] > 0.0
    falling, *_ = _curve(scores, -scores, weights)
    assert falling[:2] == (0.0, 1.0)


def test_the_slope_is_that_of_choices_among_items() -> None:
    rng = np.random.default_rng(2)
    judged = []
    for _ in range(1500):
        scores = rng.normal(3, 1, 41) + rng.normal()
        weights = np.exp(0.8 * scores)
        one = rng.choice(41, p=weights / weights.sum())
        judged.append(_Judged(scores[[one]], np.ones(1), np.delete(scores, one)))
    assert _slope(judged) == pytest.approx(0.8, abs=0.08)
    # at the maximum of the likelihood, by a search
    slopes = np.linspace(0.5, 1.1, 601)
    likelihood = [
        sum(float(s * user.chosen[0]
                  - np.log(np.exp(s * user.chosen[0]) + np.exp(s * user.others).sum()))
            for user in judged[:200])
        for s in slopes
    ]  # fmt: skip
    assert _slope(judged[:200]) == pytest.approx(slopes[int(np.argmax(likelihood))], abs=0.002)


def test_too_few_ratings_are_refused() -> None:
    drawn = world(0.6)
    few = sampled(drawn).beginning(300)
    with pytest.raises(InputDataError, match="ratings to hold back are too few"):
        learn_shown(few, rank=2, rounds=2, seed=0, choices=True)
