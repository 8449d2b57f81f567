"""Tables about items as columns of numbers: quantities, categories, years."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.features.content import Content, encoded


def table(rows: list[tuple[int, str, str]]) -> pa.Table:
    places, names, values = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({
        "place": pa.array(places, pa.int32()),
        "name": pa.array(names, pa.string()),
        "value": pa.array(values, pa.string()),
    })  # fmt: skip


def columns(rows: list[tuple[int, str, str]], count: int) -> dict[str, list[float]]:
    made = encoded(table(rows), count)
    assert isinstance(made, Content)
    assert made.matrix.shape == (count, len(made.names))
    return {name: made.matrix[:, place].tolist() for place, name in enumerate(made.names)}


def test_categories_are_ones_where_an_item_has_them() -> None:
    genres = ["Comedy", "Drama", "Comedy Drama", "Comedy", "Drama", "Comedy Drama", "Comedy", "War"]
    rows = [(place, "genres", genre) for place, text in enumerate(genres) for genre in text.split()]
    made = columns([*rows, *[(p, "genres", "Drama") for p in (7, 8)]], 9)
    assert made == {
        "genres: Comedy": [1, 0, 1, 1, 0, 1, 1, 0, 0],
        "genres: Drama": [0, 1, 1, 0, 1, 1, 0, 1, 1],
    }, "War, on a single item, is left out"


def test_many_different_numbers_are_a_quantity_with_the_mean_for_missing_ones() -> None:
    rows = [(place, "length", str(80 + place)) for place in range(31)]
    (made,) = columns(rows, 33).values()
    assert made[:31] == [80 + place for place in range(31)]
    assert made[31:] == [95, 95]
    few = columns([(place, "age", str(place % 3)) for place in range(30)], 30)
    assert list(few) == ["age: 0", "age: 1", "age: 2"]
    flags = columns([(place, "action", str(place % 2)) for place in range(10)], 10)
    assert flags == {"action": [0, 1] * 5}


@pytest.mark.parametrize("date", ["15-Dec-{}", "{}-12-15", "Heat ({})", "{}"])
def test_dates_are_years(date: str) -> None:
    rows = [(place, "when", date.format(1980 + place)) for place in range(40)]
    (made,) = columns(rows, 40).values()
    assert made == [*range(1980, 2020)]


def test_years_at_the_end_of_titles_are_a_quantity() -> None:
    rows = [(place, "title", f"Film {place} ({1990 + place})") for place in range(8)]
    assert columns([*rows, (8, "title", "No year")], 10) == {
        "title: year": [*range(1990, 1998), 1993.5, 1993.5]
    }


@pytest.mark.parametrize(
    "rows",
    [[], [(0, "id", "a"), (1, "id", "b")], [(p, "same", "x") for p in range(9)]],
    ids=["nothing", "all different", "all equal"],
)
def test_what_says_nothing_is_left_out(rows: list[tuple[int, str, str]]) -> None:
    assert encoded(table(rows), 9) is None


@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from("xy"), st.text(max_size=4)),
                max_size=60, unique=True), st.randoms())  # fmt: skip
def test_any_texts_give_finite_numbers_in_any_order(
    rows: list[tuple[int, str, str]], random: object
) -> None:
    made = encoded(table(rows), 9)
    random.shuffle(rows)  # type: ignore[attr-defined]
    again = encoded(table(rows), 9)
    assert (made is None) == (again is None)
    if made is not None and again is not None:
        assert np.isfinite(made.matrix).all()
        assert made.names == again.names
        np.testing.assert_allclose(made.matrix, again.matrix, rtol=1e-12)
