"""Text from outside that is shown steers nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.visible import inert, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Amélie (2001) 中 😀", "Amélie (2001) 中 😀"),
        ("a\x1b[2Jb\r\n\t\x07", r"a\x1b[2Jb\r\n\t\x07"),
        ("invoice\u202etxt.exe", r"invoice\u202etxt.exe"),
        ("\u2066\u2069\u200f\ufeff\U000e0041", r"\u2066\u2069\u200f\ufeff\U000e0041"),
        ("\ud800", r"\ud800"),
        ("\x9b31m", r"\x9b31m"),
    ],
)
def test_what_steers_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(alphabet=st.characters(codec=None)))
def test_all_of_it_can_be_printed_and_encoded(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert all(ord(letter) >= 32 and ord(letter) != 127 for letter in shown)
    assert visible(shown) == shown
    assert visible(text.replace("\x00", "")[:5], 3).count("\n") == 0


def test_long_text_is_cut() -> None:
    assert visible("abcdef", 4) == "abc…"
    assert visible("abcd", 4) == "abcd"


@pytest.mark.parametrize(
    "text", ["=cmd()", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "=", "-1 =x"]
)
def test_formulas_become_text(text: str) -> None:
    assert inert(text) == f"'{text}"


@pytest.mark.parametrize(
    "text",
    [
        "-0.5",
        "+0.0123",
        "-1.5e-07",
        "-",
        "+0.1 [-0.2, +0.3]",
        "a=b",
        "1=1",
        "",
        "'=1",
        "+1.12e−10",
        "−1.5e−07",
        "+0.1 [−0.2, +1e−05]",
    ],
)
def test_numbers_and_plain_text_stay(text: str) -> None:
    assert inert(text) == text
