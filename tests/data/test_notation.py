"""Decimal signs, units of time and the order of day and month, as people write them."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.data.formats.notation import (
    UNITS,
    day_first,
    decimal_sign,
    mostly_times,
    numbers,
    time_unit,
)
from spark_rank.errors import InputDataError

# from 1974 to 2100
SECONDS = st.integers(130_000_000, 4_102_444_800)
DATES = st.dates(date(1995, 1, 1), date(2040, 12, 31))


@given(st.lists(SECONDS, min_size=1, max_size=20), st.sampled_from(list(UNITS)))
def test_the_unit_of_times_follows_from_their_size(times: list[int], unit: str) -> None:
    scale = dict(UNITS)[unit][1]  # type: ignore[index]
    assert time_unit([second * scale for second in times], "x") == unit
    # missing times, and times near 1970, do not show the unit
    assert time_unit([0, -1, *[second * scale for second in times]], "x") == unit


def test_times_of_two_units_are_refused() -> None:
    assert time_unit([], "x") == time_unit([0, 5, float("nan")], "x") == "s"
    assert time_unit([1e9] * 40 + [1e12], "x") == "s"
    with pytest.raises(InputDataError, match=r"x: .*seconds and in milliseconds.*time_unit=s"):
        time_unit([1e9, 1e12], "x")


@given(
    st.lists(DATES, min_size=1, max_size=20), st.sampled_from("/.-"), st.booleans(), st.booleans()
)
def test_the_order_of_day_and_month_is_never_guessed(
    days: list[date], sign: str, first: bool, padded: bool
) -> None:
    zero = "02" if padded else ""
    pairs = [(d.day, d.month) if first else (d.month, d.day) for d in days]
    texts = [f"{a:{zero}}{sign}{b:{zero}}{sign}{d.year} 10:11"
             for (a, b), d in zip(pairs, days, strict=True)]  # fmt: skip
    if any(d.day > 12 for d in days):
        assert day_first(texts, "x") is first
    else:
        with pytest.raises(InputDataError, match="input.day_first=true"):
            day_first(texts, "x")


def test_dates_that_contradict_each_other_or_need_no_order() -> None:
    with pytest.raises(InputDataError, match="13/04/2020 and 04/13/2020"):
        day_first(["13/04/2020", "04/13/2020"], "x")
    now = datetime(2020, 4, 3, tzinfo=UTC)
    assert day_first([now.isoformat(), "2020/04/03", "1600000000", "soon", ""], "x") is None


@pytest.mark.parametrize(
    ("texts", "sign"),
    [
        (["3,5", "4", "0,5"], ","), (["3,5", " 4,0 "], ","), (["3.5", "4"], "."),
        (["3", "4"], "."), (["3,5", "4.5"], "."), ([], "."), (["3,5", "oops"], "."),
        (["3,5"] * 30 + ["n/a"], ","),
    ],
)  # fmt: skip
def test_decimal_commas(texts: list[str], sign: str) -> None:
    assert decimal_sign(texts) == sign


def test_what_looks_like_times() -> None:
    assert mostly_times(["881250949", "", "2020-01-01"])
    assert not mostly_times(["1", "5", "why", "881250949"])
    assert not mostly_times(["", ""])
    assert numbers(["1", "x", "2.5"]) == [1.0, 2.5]
