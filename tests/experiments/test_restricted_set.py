"""Views of a rating set against sets of the ratings that they show."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.experiments import restricted_set
from spark_rank.experiments.rating_set import RatingSet, user_blocks
from spark_rank.experiments.restricted_set import restricted

Row = tuple[str, str, float]
ROWS = st.lists(
    st.tuples(st.integers(0, 12).map(str), st.integers(0, 9).map(str), st.sampled_from([1.0, 4.0])),
    unique_by=lambda row: row[:2],
    max_size=80,
)


def set_of(rows: list[Row]) -> RatingSet:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    return RatingSet.from_columns("some", *columns)


def with_enough(rows: list[Row], user_min: int, item_min: int) -> list[Row]:
    users = [user for user, _, _ in rows]
    kept = [row for row in rows if users.count(row[0]) >= user_min]
    items = [item for _, item, _ in kept]
    return [row for row in kept if items.count(row[1]) >= item_min]


@given(ROWS, st.integers(0, 6), st.integers(0, 6), st.sampled_from([1, 5, 10**6]))
def test_a_view_shows_the_users_and_items_with_enough_ratings(
    rows: list[Row], user_min: int, item_min: int, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restricted_set, "user_blocks", partial(user_blocks, most=block))
        found = restricted(set_of(rows), user_min, item_min)
    expected = set_of(with_enough(rows, user_min, item_min))
    for name in ("user_ids", "item_ids", "n_ratings"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (found.name, found.n_users, found.n_items) == (
        "some",
        expected.n_users,
        expected.n_items,
    )
    for user in range(expected.n_users):
        for ours, theirs in zip(found.of_user(user), expected.of_user(user), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    users, items = np.arange(expected.n_users)[::-1], np.arange(expected.n_items)[::2]
    missing = np.linspace(-1.0, 0.0, len(users))
    np.testing.assert_array_equal(
        found.columns_of(users, items, missing), expected.columns_of(users, items, missing)
    )


def test_a_view_holds_no_ratings_and_is_made_once() -> None:
    whole = set_of([(str(n), str(n % 7), 1.0) for n in range(50)])
    found = restricted(whole, 1, 7)
    assert found.whole is whole
    assert restricted(whole, 1, 7) is found


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 20))
def test_blocks_are_all_users_in_order_and_no_larger_than_asked(
    sizes: list[int], most: int
) -> None:
    ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    ranges = list(user_blocks(ends, most))
    assert [user for first, last in ranges for user in range(first, last)] == list(
        range(len(sizes))
    )
    for first, last in ranges:
        assert ends[last] - ends[first] <= most or last == first + 1
