"""Generated choices have the probabilities that they state, and depend on the seed alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spark_rank.data.choices import (
    SHARES_AT_RANDOM,
    Choices,
    by_level,
    by_liking,
    choose,
    completed,
)

Array = NDArray[Any]
LEVELS = np.random.default_rng(0).integers(1, 6, (400, 60)).astype(float)


def given(users: int = 80, items: int = 40, share: float = 0.4) -> tuple[Array, Array, Array]:
    """Draw ratings of users with a level of their own, of items with a quality."""
    rng = np.random.default_rng(1)
    liking = rng.normal(3.5, 0.5, (users, 1)) + rng.normal(0.0, 1.0, (1, items))
    stars = np.clip(np.rint(liking + rng.normal(0.0, 0.5, liking.shape)), 1, 5)
    of_user, of_item = np.nonzero(rng.random(liking.shape) < share)
    return of_user, of_item, stars[of_user, of_item]


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_probabilities_have_the_mean_that_was_asked_for(share: float) -> None:
    for made in (by_liking(LEVELS, 1.0, share), by_level(LEVELS, 0.25, share)):
        assert made.mean() == pytest.approx(share, abs=1e-9)
        assert (made > 0).all()
        assert (made <= 1).all()


def test_probabilities_grow_with_the_rating_as_stated() -> None:
    liked = by_liking(LEVELS, 0.7, 0.05)
    one, two = liked[LEVELS == 1][0], liked[LEVELS == 2][0]
    assert two / one == pytest.approx(np.exp(0.7 / LEVELS.std()))
    level = by_level(LEVELS, 0.5, 0.05)
    of = [level[rating == LEVELS][0] for rating in range(1, 6)]
    assert np.divide(of, of[3]) == pytest.approx([1 / 8, 1 / 4, 1 / 2, 1, 1])
    assert by_liking(LEVELS, 0.0, 0.2) == pytest.approx(np.full(LEVELS.shape, 0.2))


def test_ratings_are_drawn_with_their_probabilities() -> None:
    propensities = by_level(LEVELS, 0.5, 0.2)
    drawn = choose(LEVELS, propensities, seed=3, shown=10, held_out=0.25)
    rated = drawn.training | drawn.chosen
    for rating in range(1, 6):
        own = rating == LEVELS
        expected = propensities[own].mean()
        error = np.sqrt(expected * (1 - expected) / own.sum())
        assert rated[own].mean() == pytest.approx(expected, abs=5 * error)
    assert drawn.chosen.sum() / rated.sum() == pytest.approx(0.25, abs=0.03)


def test_items_are_shown_at_random_among_the_others() -> None:
    drawn = choose(LEVELS, by_level(LEVELS, 0.25, 0.3), seed=3, shown=10, held_out=0.25)
    rated = drawn.training | drawn.chosen
    assert not (rated & drawn.shown).any()
    assert not (drawn.training & drawn.chosen).any()
    assert set(drawn.shown.sum(axis=1)) == {10}
    # whatever the rating, an item that is not rated is shown equally often
    shares = [drawn.shown[~rated & (rating == LEVELS)].mean() for rating in range(1, 6)]
    assert np.ptp(shares) < 0.05


def test_a_user_with_few_items_left_is_shown_those() -> None:
    everything = np.ones((2, 8))
    drawn = choose(everything, everything, seed=0, shown=3, held_out=0.5)
    assert not drawn.shown.any()
    assert (drawn.training | drawn.chosen).all()


def masks(made: Choices, users: int) -> Array:
    return np.stack([made.training[:users], made.chosen[:users], made.shown[:users]])


def test_draws_depend_on_the_seed_and_the_user_alone() -> None:
    propensities = np.full(LEVELS.shape, 0.3)
    first = choose(LEVELS, propensities, seed=3, shown=10, held_out=0.2)
    few = choose(LEVELS[:7], propensities[:7], seed=3, shown=10, held_out=0.2)
    np.testing.assert_array_equal(masks(first, 7), masks(few, 7))
    other = choose(LEVELS, propensities, seed=4, shown=10, held_out=0.2)
    assert (masks(first, 400) != masks(other, 400)).any()


def test_completed_ratings_have_the_shares_of_ratings_at_random() -> None:
    complete = completed(*given(), seed=2)
    assert complete.shape == (80, 40)
    found = np.bincount(complete.astype(int).ravel(), minlength=6)[1:] / complete.size
    assert found == pytest.approx(SHARES_AT_RANDOM, abs=1 / complete.size + 1e-9)
    np.testing.assert_array_equal(complete, completed(*given(), seed=2))


def test_completed_ratings_follow_the_given_ones() -> None:
    users, items, ratings = given()
    complete = completed(users, items, ratings, seed=2, shares=(0.2,) * 5)
    assert np.corrcoef(complete[users, items], ratings)[0, 1] > 0.5
    # an item's mean over all users is near the mean of those who rated it
    means = [ratings[items == item].mean() for item in range(40)]
    assert np.corrcoef(complete.mean(axis=0), means)[0, 1] > 0.9
