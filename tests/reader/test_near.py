"""Suggestions of ids for a misspelt one."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from spark_rank.reader.near import did_you_mean, letters_to_change

TEXT = st.text("abé1", max_size=7)


@cache
def changes(first: str, second: str) -> int:
    """Return the Levenshtein distance as it is defined."""
    if not (first and second):
        return len(first) + len(second)
    other = changes(first[1:], second[1:]) + (first[0] != second[0])
    return min(other, changes(first[1:], second) + 1, changes(first, second[1:]) + 1)


@given(TEXT, st.lists(TEXT, min_size=1, max_size=6))
def test_letters_to_change(wanted: str, ids: list[str]) -> None:
    assert letters_to_change(wanted, ids).tolist() == [changes(wanted, each) for each in ids]


def test_the_nearest_ids_are_named_in_order() -> None:
    ids = ["u41", "x", "u4", "u42", "i42", "u4200"]
    assert did_you_mean("u42", ids) == "did you mean 'u42' or 'i42' or 'u4'?"
    assert did_you_mean("u42", []) == "there are none"
    assert did_you_mean("", ["", "a"]) == "did you mean '' or 'a'?"
