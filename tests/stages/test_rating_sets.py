"""Rating sets out of pieces against the same ratings as columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.data.pieces import cut_rows
from spark_rank.data.shares import shares_for
from spark_rank.experiments.rating_set import RatedTwiceError, RatingSet, user_blocks
from spark_rank.stages import rating_sets
from spark_rank.stages.rating_sets import READ_COLUMNS, build_rating_set

ARRAYS = ("ends", "items", "ratings", "user_ids", "item_ids")
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["2", "10", "9", "100", "u 1", "ü"]),
        st.sampled_from(["b", "a", "aa", "3", "20"]),
        st.sampled_from([1.0, 2.5, 5.0, -0.0, 0.1]),
    ),
    unique_by=lambda row: row[:2],
)
NUMBERS = st.lists(
    st.tuples(
        st.integers(0, 300).map(str), st.integers(0, 9).map(str), st.sampled_from([1.0, 4.0])
    ),
    unique_by=lambda row: row[:2],
    max_size=60,
)


def pieces_of(
    rows: list[tuple[str, str, float]], shares: int, chunk_rows: int
) -> Iterator[dict[str, Any]]:
    """Cut rows into pieces as a worker does; the batches have two rows."""
    columns = {
        "user_id": pa.array([user for user, _, _ in rows], pa.string()),
        "item_id": pa.array([item for _, item, _ in rows], pa.string()),
        "rating": pa.array([rating for _, _, rating in rows], pa.float64()),
        "timestamp": pa.nulls(len(rows), pa.int64()),
        "reason": pa.nulls(len(rows), pa.string()),
    }
    for batch in cut_rows(iter(pa.table(columns).to_batches(2)), shares_for(1, shares), chunk_rows):
        for row in batch.to_pylist():
            if row["share"] is not None:
                yield {name: row[name] for name in READ_COLUMNS}


def assert_same(found: RatingSet, expected: RatingSet) -> None:
    assert found.name == expected.name
    for name in ARRAYS:
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert ours.dtype == theirs.dtype, name
        np.testing.assert_array_equal(ours, theirs, name)
    np.testing.assert_array_equal(np.signbit(found.ratings), np.signbit(expected.ratings))


@given(st.one_of(ROWS, NUMBERS), st.integers(1, 4), st.integers(1, 7))
def test_pieces_become_the_set_of_the_columns(
    rows: list[tuple[str, str, float]], shares: int, chunk_rows: int
) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    built = build_rating_set("some", lambda: pieces_of(rows, shares, chunk_rows))
    assert_same(built, RatingSet.from_columns("some", *columns))


def test_users_are_sorted_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = partial(user_blocks, most=50)
    monkeypatch.setattr(rating_sets, "user_blocks", blocks)
    pairs = np.random.default_rng(0).permutation(40 * 90)[:2_500]
    columns = [(pairs % 40).astype(str), (pairs // 40).astype(str), 1.0 + pairs % 5]
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    built = build_rating_set("many", lambda: pieces_of(rows, 2, 700))
    assert len(list(blocks(built.ends))) > 10
    assert built.n_ratings.max() > 50
    assert_same(built, RatingSet.from_columns("many", *columns))


@given(NUMBERS.filter(bool), st.data())
def test_a_pair_given_twice_is_named_as_from_columns_names_it(
    rows: list[tuple[str, str, float]], data: st.DataObject
) -> None:
    again = data.draw(st.lists(st.sampled_from(rows), min_size=1, max_size=3))
    given_twice = data.draw(st.permutations([*rows, *again]))
    with pytest.raises(RatedTwiceError) as expected:
        RatingSet.from_columns("some", *map(list, zip(*given_twice, strict=True)))
    with pytest.raises(RatedTwiceError) as raised:
        build_rating_set("some", lambda: pieces_of(given_twice, 3, 4))
    assert str(raised.value) == str(expected.value)
