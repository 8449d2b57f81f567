"""Rankings of many users at once: against the rankings and losses of any preference, user by user.

`quicksort_rank` is given the same draws; it asks the same preference through Python.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from spark_rank.learners.perceptrons.draws import mix, uniform
from spark_rank.preference import (
    Counted,
    degree_rank,
    from_scores,
    from_votes,
    preference_loss,
    quicksort_rank,
    ranking_loss,
)
from spark_rank.preference.many_users import UserRankings, rank_users

ALL = 2**62


class Draws:
    """A generator whose draw t is a function of a key and t."""

    def __init__(self, key: np.uint64) -> None:
        self.key, self.t = key, 0

    def _next(self) -> float:
        with np.errstate(over="ignore"):
            drawn = uniform.py_func(mix.py_func(self.key ^ mix.py_func(np.uint64(self.t))))
        self.t += 1
        return float(drawn)

    def integers(self, n: int) -> int:
        return int(self._next() * n)

    def random(self, n: int) -> NDArray[np.float64]:
        return np.array([self._next() for _ in range(n)])


# few different values: ties of scores, and of ratings
values = st.integers(0, 4).map(float)


@st.composite
def cases(draw: Any) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]], list[int]]:
    """Return every user's scores (a row per item), ratings and key."""
    voters = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    scores = [
        np.array(draw(st.lists(values, min_size=n * voters, max_size=n * voters)))
        .reshape(n, voters) for n in sizes
    ]  # fmt: skip
    ratings = [np.array(draw(st.lists(values, min_size=n, max_size=n))) for n in sizes]
    keys = [draw(st.integers(0, 2**64 - 1)) for _ in sizes]
    return scores, ratings, keys


def ranked(case: Any, *, sort: bool = True, top: int = ALL) -> UserRankings:
    scores, ratings, keys = case
    ends = np.cumsum([0, *map(len, ratings)])
    return UserRankings(*rank_users(
        np.concatenate(scores), np.concatenate(ratings), ends, np.array(keys, np.uint64), sort, top
    ))  # fmt: skip


def by_user(found: UserRankings, case: Any) -> list[list[int]]:
    """Return every user's order, by the numbers of his or her own items."""
    starts = np.cumsum([0, *map(len, case[1])])
    return [
        (found.chosen[found.ends[user] : found.ends[user + 1]] - starts[user]).tolist()
        for user in range(len(case[1]))
    ]


@given(cases(), st.integers(1, 6) | st.none())
def test_quicksort_is_that_of_any_preference(case: Any, top: int | None) -> None:
    found = ranked(case, top=ALL if top is None else top)
    orders = by_user(found, case)
    for user, (scores, _, key) in enumerate(zip(*case, strict=True)):
        prefer = Counted(from_votes(scores.T))
        draws = cast(np.random.Generator, Draws(np.uint64(key)))
        assert orders[user] == quicksort_rank(range(len(scores)), prefer, draws, top=top)
        assert found.calls[user] == prefer.calls


@given(cases())
def test_the_order_by_degree_is_that_of_any_preference(case: Any) -> None:
    found = ranked(case, sort=False)
    orders = by_user(found, case)
    for user, scores in enumerate(case[0]):
        prefer = Counted(from_votes(scores.T))
        assert orders[user] == degree_rank(range(len(scores)), prefer)
        assert found.calls[user] == prefer.calls


@given(cases(), st.booleans())
def test_losses_are_those_of_preference_and_order(case: Any, sort: bool) -> None:
    found = ranked(case, sort=sort)
    orders = by_user(found, case)
    for user, (scores, ratings, _) in enumerate(zip(*case, strict=True)):
        prefer = from_scores(scores[:, 0]) if scores.shape[1] == 1 else from_votes(scores.T)
        truth = dict(enumerate(ratings.tolist()))
        for loss, expected in (
            (found.preference_losses[user], preference_loss(prefer, truth)),
            (found.ranking_losses[user], ranking_loss(orders[user], truth)),
        ):
            assert np.isnan(loss) if expected is None else loss == pytest.approx(expected)


@given(cases(), st.integers(1, 6))
def test_of_an_order_cut_off_there_is_no_loss(case: Any, top: int) -> None:
    whole, cut = ranked(case), ranked(case, top=top)
    for user, (full, first) in enumerate(
        zip(by_user(whole, case), by_user(cut, case), strict=True)
    ):
        assert first == full[:top]
        if len(full) > top:
            assert np.isnan(cut.ranking_losses[user])
    assert np.array_equal(whole.preference_losses, cut.preference_losses, equal_nan=True)


@given(cases())
def test_nobody_depends_on_who_else_is_ranked(case: Any) -> None:
    together = by_user(ranked(case), case)
    for user in range(len(together)):
        alone = tuple([part[user]] for part in case)
        assert by_user(ranked(alone), alone) == [together[user]]


def test_ties_are_drawn_evenly() -> None:
    n, users = 3, 6_000
    case = ([np.zeros((n, 1))] * users, [np.arange(3.0)] * users, [*range(users)])
    orders, times = np.unique(by_user(ranked(case), case), axis=0, return_counts=True)
    assert len(orders) == 6
    # of 1,000 each: five standard deviations
    assert (np.abs(times - users / 6) < 150).all()
