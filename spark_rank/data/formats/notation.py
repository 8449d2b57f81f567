"""Recognises how numbers and times are written: decimal sign, unit, order of day and month."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from spark_rank.data.formats.dialect import DECIMAL_COMMA
from spark_rank.errors import InputDataError

TimeUnit = Literal["s", "ms", "us", "ns"]
Decimal = Literal[".", ","]
UNITS: dict[TimeUnit, tuple[str, int]] = {
    "s": ("seconds", 1),
    "ms": ("milliseconds", 10**3),
    "us": ("microseconds", 10**6),
    "ns": ("nanoseconds", 10**9),
}
# smaller numbers are near 1970 in every unit, and do not show which it is
_TELLING = 1e8
# upper limits: seconds end in the year 5138, other units where the next one begins
_ENDS: tuple[tuple[TimeUnit, float], ...] = (("s", 1e11), ("ms", 1e14), ("us", 1e17))
# this share of the values may be damaged
_FEW = 0.05
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
_YEAR_LAST = re.compile(r"\s*([0-9]{1,2})[-/.]([0-9]{1,2})[-/.][0-9]{4}(?![0-9])")
_YEAR_FIRST = re.compile(r"\s*[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}(?![0-9])")


def decimal_sign(ratings: Iterable[str]) -> Decimal:
    """Return a comma if ratings are written like 3,5 (or 4, if whole), else a point."""
    filled = [text for text in ratings if text.strip()]
    commas = sum(bool(DECIMAL_COMMA.fullmatch(text)) for text in filled)
    whole = sum(bool(_WHOLE.fullmatch(text)) for text in filled)
    dotted = any("." in text and "," not in text for text in filled)
    return "," if commas and not dotted and commas + whole >= (1 - _FEW) * len(filled) else "."


def unit_of(number: float) -> TimeUnit | None:
    """Return the unit in which a number is a plausible time; None if it is too small to show."""
    if not abs(number) >= _TELLING:
        return None
    return next((unit for unit, end in _ENDS if abs(number) < end), "ns")


def time_unit(times: Iterable[float], where: str) -> TimeUnit:
    """Return the unit of numeric times; raise `InputDataError` if they have several units."""
    counts = Counter(unit for unit in map(unit_of, times) if unit is not None)
    often = [unit for unit, count in counts.most_common() if count > _FEW * counts.total()]
    if len(often) > 1:
        first, second = sorted(often, key=list(UNITS).index)[:2]
        raise InputDataError(
            f"{where}: holds times in {UNITS[first][0]} and in {UNITS[second][0]}: convert one of "
            f"them, or set the unit to use: --set input.time_unit={first}"
        )
    return often[0] if often else "s"


def numbers(texts: Iterable[str]) -> list[float]:
    """Return the numbers among the texts."""
    return [number for text in texts if (number := _number(text)) is not None]


def day_first(times: Iterable[str], where: str) -> bool | None:
    """Return whether the day comes before the month; None without dates that end with the year.

    Raise `InputDataError` if the order is not clear: no date has a day above 12, or dates
    contradict each other.
    """
    dates = {match[0].strip(): match for text in times if (match := _YEAR_LAST.match(text))}
    if not dates:
        return None
    days = {text for text, found in dates.items() if int(found[1]) > 12}
    months = {text for text, found in dates.items() if int(found[2]) > 12}
    if bool(days) != bool(months):
        return bool(days)
    example = f"{min(days)} and {min(months)}" if days else min(dates)
    raise InputDataError(
        f"{where}: dates such as {example} do not show whether the day or the month comes first: "
        "use --set input.day_first=true (or false), or leave the times out: --set "
        "input.columns.timestamp=null"
    )


def is_time(text: str) -> bool:
    """Tell whether a text looks like a plausible time."""
    number = _number(text)
    dated = _YEAR_LAST.match(text) or _YEAR_FIRST.match(text)
    return bool(dated) or (number is not None and abs(number) >= _TELLING)


def mostly_times(texts: Sequence[str]) -> bool:
    """Tell whether a column without a name holds times."""
    filled = [text for text in texts if text.strip()]
    return sum(map(is_time, filled)) * 2 > len(filled)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
