"""Recognises the format of a file by its first lines, and refuses a wrong `input.format`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from spark_rank.config import InputConfig
from spark_rank.data.formats import FORMATS
from spark_rank.data.formats.dialect import NUMBER, is_table, sniff, split_cells
from spark_rank.data.formats.notation import numbers, unit_of
from spark_rank.errors import ConfigError

# formats with unique lines; other lines with commas, tabs or blanks may be any table
_DISTINCT = ("letor", "netflix", "judgments", "jester", "movielens-dat", "eachmovie")
_NETFLIX_LINE = re.compile(r"\s*\d+\s*,\s*\d\s*,\s*\d{4}-\d{2}-\d{2}\s*$|\s*\d+\s*:\s*$")
_BOOK_CROSSING = re.compile(r'(?i)"user-id";"isbn";"book-rating"\s*$')
_MOVIELENS_100K = re.compile(r"(^|/)u[0-9ab]?\.(data|base|test)(\.gz)?$")
# the separators of formats with the rating in the third column, to check their levels
_RATINGS = {"movielens-100k": "\t", "movielens-dat": "::", "movielens-csv": ",", "eachmovie": " "}
_MOST = 0.95


def recognise_format(path: str, lines: Sequence[str]) -> str | None:
    """Return the format of a file by its name and first lines; None if it is not recognised.

    A format with levels does not fit if ratings are not its levels, or times are not in seconds.
    """
    if not lines:
        return None
    for name in _DISTINCT:
        if FORMATS[name].fits(lines) and _is_likely(name, lines):
            return name
    if _BOOK_CROSSING.match(lines[0]):
        return "book-crossing"
    if FORMATS["movielens-csv"].fits(lines) and _has_levels("movielens-csv", lines[1:]):
        return "movielens-csv"
    is_movielens = _MOVIELENS_100K.search(path) and FORMATS["movielens-100k"].fits(lines)
    if is_movielens and _has_levels("movielens-100k", lines):
        return "movielens-100k"
    return "csv" if sniff([lines]) is not None else None


def check_format(file: str, lines: Sequence[str], settings: InputConfig) -> None:
    """Raise `ConfigError` if the first lines do not fit the set format, but clearly another.

    Lines that fit no format are accepted here: broken lines are quarantined with a reason.
    """
    chosen = settings.known_format
    if not lines or _fits(lines, settings):
        return
    fitting = [name for name, each in FORMATS.items() if name != chosen and each.fits(lines)]
    remedy = _other_separator(lines, settings)
    if (
        chosen == "csv"
        and settings.delimiter is not None
        and remedy
        and not (set(fitting) & set(_DISTINCT))
    ):
        raise ConfigError(
            f"input.delimiter: {file} is not delimited by {settings.separator!r}: its first line "
            f"is {lines[0][:60]!r}: use {remedy}"
        )
    if fitting:
        raise ConfigError(
            f"input.format: {file} does not look like {chosen!r}: its first line is "
            f"{lines[0][:60]!r}, as in {' or '.join(map(repr, fitting))}: use "
            f"input.format={fitting[0]}"
        )
    if chosen != "csv" and remedy and not any(FORMATS[chosen].fits([line]) for line in lines):
        raise ConfigError(
            f"input.format: {file} does not look like {chosen!r}: its first line is "
            f"{lines[0][:60]!r}, a table: use {remedy}"
        )


def _other_separator(lines: Sequence[str], settings: InputConfig) -> str | None:
    """Return the settings to paste for lines that are a table with another separator."""
    dialect = sniff([lines], columns=settings.columns)
    if dialect is None or dialect.delimiter == settings.separator:
        return None
    shown = "\\t" if dialect.delimiter == "\t" else dialect.delimiter
    words = [] if settings.format == "csv" else ["input.format=csv"]
    words.append(f"'input.delimiter={shown}'")
    if settings.header is not None and settings.header != dialect.header:
        words.append(f"input.header={str(dialect.header).lower()}")
    return f"--set {' '.join(words)}"


def _fits(lines: Sequence[str], settings: InputConfig) -> bool:
    if settings.format != "csv":
        return FORMATS[settings.known_format].fits(lines)
    separator = settings.separator
    if separator is None:
        return not any(FORMATS[name].fits(lines) for name in _DISTINCT)
    if settings.header is None:
        return is_table(lines, separator, settings.columns)
    cells = split_cells(lines[0], separator)
    named = any(not NUMBER.fullmatch(cell) for cell in cells)
    return len(cells) >= 3 and (named or not settings.header)


def _is_likely(name: str, lines: Sequence[str]) -> bool:
    if name == "netflix":
        return _mostly(_NETFLIX_LINE.match(line) is not None for line in lines)
    if name in _RATINGS:
        return _has_levels(name, lines)
    return True


def _has_levels(name: str, lines: Sequence[str]) -> bool:
    rows = [split_cells(line, _RATINGS[name]) for line in lines]
    ratings = [float(row[2]) for row in rows if len(row) > 2 and NUMBER.fullmatch(row[2])]
    times = numbers([row[3] for row in rows if len(row) == 4])
    levels = FORMATS[name].levels
    in_seconds = all(unit_of(time) in (None, "s") for time in times)
    return in_seconds and _mostly(rating in levels for rating in ratings)


def _mostly(flags: Iterable[bool]) -> bool:
    values = list(flags)
    return sum(values) >= _MOST * len(values)
