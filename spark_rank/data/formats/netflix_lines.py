"""Reads Netflix's lines, compiled: the kind of each line, its values and its movie."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit

IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]

RATING, HEADING, BLANK, OTHER = range(4)


@njit(cache=True)
def under_headings(
    kinds: ByteArray, marks: IntArray, codes: IntArray
) -> tuple[IntArray, NDArray[np.int32], IntArray]:
    """Return the positions and movie codes of ratings with a known movie, and the other positions.

    ``marks`` are the positions of headings. ``codes[0]`` is the movie above the first heading, and
    ``codes[k]`` that of heading k; -1 is an unknown movie.
    """
    plain = np.empty(len(kinds), np.int64)
    movies = np.empty(len(kinds), np.int32)
    unknown = np.empty(len(kinds), np.int64)
    known = lost = above = 0
    for place in range(len(kinds)):
        if above < len(marks) and marks[above] == place:
            above += 1
        if kinds[place] != RATING:
            continue
        if codes[above] < 0:
            unknown[lost] = place
            lost += 1
        else:
            plain[known], movies[known] = place, codes[above]
            known += 1
    return plain[:known].copy(), movies[:known].copy(), unknown[:lost].copy()


@njit(cache=True)
def read_lines(
    text: ByteArray, ends: NDArray[np.int32], allowed: NDArray[np.bool_]
) -> tuple[ByteArray, IntArray, ByteArray, NDArray[np.int32]]:
    """Return the kind of every line, and user, rating and day of the ratings. O(bytes)."""
    lines = len(ends) - 1
    kinds = np.empty(lines, np.uint8)
    users = np.empty(lines, np.int64)
    ratings = np.empty(lines, np.uint8)
    days = np.empty(lines, np.int32)
    for i in range(lines):
        start, stop = ends[i], ends[i + 1]
        while stop > start and text[stop - 1] == 13:
            stop -= 1
        at, user = start, 0
        while at < stop and 48 <= text[at] <= 57 and at - start < 18:
            user = user * 10 + (text[at] - 48)
            at += 1
        digits = at - start
        if digits > 0 and stop - at == 1 and text[at] == 58:
            kinds[i] = HEADING
            continue
        # user, a comma, a digit, a comma, a day
        if (
            digits > 0
            and (text[start] != 48 or digits == 1)
            and stop - at == 13
            and text[at] == 44
            and 48 <= text[at + 1] <= 57
            and text[at + 2] == 44
            and allowed[text[at + 1] - 48]
        ):
            day = _read_day(text, at + 3)
            if day != -1:
                kinds[i], users[i], ratings[i], days[i] = RATING, user, text[at + 1] - 48, day
                continue
        kinds[i] = BLANK
        for place in range(start, stop):
            if text[place] != 32:
                kinds[i] = OTHER
    return kinds, users, ratings, days


@njit(cache=True)
def _read_day(text: ByteArray, at: int) -> int:
    """Return the days from 1970 to a date YYYY-MM-DD; -1 if it is invalid or before 1970."""
    if text[at + 4] != 45 or text[at + 7] != 45:
        return -1
    number = 0
    for place in (0, 1, 2, 3, 5, 6, 8, 9):
        digit = text[at + place]
        if digit < 48 or digit > 57:
            return -1
        number = number * 10 + (digit - 48)
    year, month, day = number // 10_000, number // 100 % 100, number % 100
    if year < 1970 or month < 1 or month > 12 or day < 1:
        return -1
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    length = 31 - (month in (4, 6, 9, 11))
    if month == 2:
        length = 29 if leap else 28
    if day > length:
        return -1
    # days before the month in a year that begins with March, and before the year
    moved = (month + 9) % 12
    since = year - (month <= 2)
    before = since * 365 + since // 4 - since // 100 + since // 400
    return before + (moved * 306 + 5) // 10 + day - 1 - 719_468
