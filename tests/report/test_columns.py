"""Columns of text: under each other on a terminal, wide characters included."""

from __future__ import annotations

import pytest

from spark_rank.report.columns import cut, in_columns, pad, side_by_side, width


@pytest.mark.parametrize(
    ("text", "places"),
    [("", 0), ("film", 4), ("七人の侍", 8), ("e\u0301", 1), ("한국", 4), ("🎬", 2), ("ｆ", 2)],
)
def test_width_is_what_a_terminal_takes(text: str, places: int) -> None:
    assert width(text) == places


@pytest.mark.parametrize("most", range(1, 12))
@pytest.mark.parametrize("text", ["a long title", "七人の侍, 1954", "e\u0301te\u0301 🎬🎬🎬🎬🎬"])
def test_a_cut_text_fits_and_begins_as_the_whole(text: str, most: int) -> None:
    shown = cut(text, most)
    assert width(shown) <= most
    assert text.startswith(shown.removesuffix("…"))
    assert (shown == text) == (width(text) <= most)
    assert width(pad(shown, most)) == most


def test_columns_stand_under_each_other() -> None:
    lines = in_columns([("1", "侍", "x"), ("10", "film", "yy")], (True, False, False))
    assert lines == [" 1  侍    x ", "10  film  yy"]
    assert in_columns([], ()) == []


def test_blocks_of_different_length_stand_beside_each_other() -> None:
    assert side_by_side(["侍", "a"], ["x", "y", "z"]) == ["侍   x", "a    y", "     z"]
    assert side_by_side(["a", "b"], ["x"]) == ["a   x", "b"]
