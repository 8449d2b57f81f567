"""Numbers of a report: one minus, and none before a zero."""

from __future__ import annotations

import pytest

from spark_rank.report.numbers import interval, shown
from spark_rank.visible import inert


@pytest.mark.parametrize(
    ("value", "form", "expected"),
    [
        (None, ".4g", "–"),
        (-0.00004, ".4f", "0.0000"),
        (-0.00004, "+.4f", "+0.0000"),
        (-0.5, "+.4f", "−0.5000"),
        (1.12e-10, "+.3g", "+1.12e−10"),
        (-1234567.8, ",.1f", "−1,234,567.8"),
        (0.5, ".4g", "0.5"),
    ],
)
def test_numbers_have_one_form(value: float | None, form: str, expected: str) -> None:
    assert shown(value, form) == expected
    assert inert(expected) == expected  # in a table it needs no apostrophe


def test_an_interval_has_both_ends_or_none() -> None:
    assert interval(-1.0, 2.5) == "−1 to 2.5"
    assert interval(None, 1.0) == interval(1.0, None) == "–"
