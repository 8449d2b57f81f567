"""A rating set against dicts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.experiments.rating_set import RatingSet

PAIRS = st.dictionaries(
    st.tuples(st.sampled_from(["2", "10", "9", "u 1"]), st.sampled_from(["b", "a", "aa", "3"])),
    st.sampled_from([1.0, 2.5, 5.0]),
    min_size=1,
)


@given(PAIRS, st.randoms(use_true_random=False))
def test_every_rating_is_where_it_belongs(pairs: dict, random: object) -> None:
    entries = list(pairs.items())
    random.shuffle(entries)  # type: ignore[attr-defined]
    users, items = zip(*[pair for pair, _ in entries], strict=True)
    data = RatingSet.from_columns("some", users, items, [rating for _, rating in entries])
    found = {}
    for user in range(data.n_users):
        own, ratings = data.of_user(user)
        assert (np.diff(own) > 0).all()
        for item, rating in zip(own, ratings, strict=True):
            found[str(data.user_ids[user]), str(data.item_ids[item])] = float(rating)
    assert found == pairs
    assert data.levels.tolist() == sorted(set(pairs.values()))
    assert (data.levels[data.ranks(data.ratings) - 1] == data.ratings).all()


def test_ids_that_are_numbers_are_in_their_order() -> None:
    data = RatingSet.from_columns("some", ["10", "9", "100"], ["b", "a", "c"], [1, 2, 3])
    assert data.user_ids.tolist() == ["9", "10", "100"]
    assert data.n_ratings.tolist() == [1, 1, 1]
    mixed = RatingSet.from_columns("some", ["10", "9", "x"], ["1", "2", "3"], [1, 2, 3])
    assert mixed.user_ids.tolist() == ["10", "9", "x"]


def test_columns_hold_ratings_or_what_is_missing() -> None:
    data = RatingSet.from_columns("s", ["1", "1", "2", "3"], ["1", "3", "3", "2"], [4, 5, 1, 2])
    matrix = data.columns_of(np.array([2, 0]), np.array([2, 1]), np.array([0.5, -1.0]))
    assert matrix.tolist() == [[0.5, 5.0], [2.0, -1.0]]


def test_a_pair_given_twice_is_named() -> None:
    with pytest.raises(ValueError, match="user b has rated item 7 twice"):
        RatingSet.from_columns("some", ["a", "b", "b"], ["7", "7", "7"], [1, 2, 3])
