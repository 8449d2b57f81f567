"""Completes the settings of a delimited table from the first lines of its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spark_rank.config import InputConfig
from spark_rank.data.formats.columns import choose_columns
from spark_rank.data.formats.dialect import (
    DELIMITERS,
    Dialect,
    MixedHeadersError,
    Rows,
    sniff,
    split_cells,
    usual_width,
)
from spark_rank.data.formats.notation import (
    UNITS,
    day_first,
    decimal_sign,
    is_time,
    mostly_times,
    numbers,
    time_unit,
)
from spark_rank.data.formats.samples import Sample
from spark_rank.errors import ConfigError, InputDataError

_SHOWN = 60
_MOST = 0.8


@dataclass(frozen=True)
class _Table:
    """The sampled rows of one file without its header, and the positions of its columns."""

    path: str
    names: list[str]
    rows: Rows
    places: dict[str, int]

    def cells(self, role: str) -> list[str]:
        """Return the cells of a column; empty if there is no such column."""
        place = self.places.get(role)
        return [] if place is None else [row[place] for row in self.rows if place < len(row)]


def is_complete(settings: InputConfig) -> bool:
    """Tell whether the settings leave nothing to recognise."""
    return None not in (settings.delimiter, settings.header, settings.decimal, settings.time_unit)


def complete_table(samples: Sequence[Sample], settings: InputConfig) -> InputConfig:
    """Return the settings, completed from the samples.

    Raise `InputDataError` if the samples are not a table, or contradict each other.
    """
    filled = [sample for sample in samples if sample.lines]
    if not filled:
        raise InputDataError(f"{samples[0].path}: holds only blank lines: name a file with ratings")
    dialect = _dialect(filled, settings)
    completed = replace(settings, delimiter=dialect.delimiter, header=dialect.header)
    if settings.header is None and not dialect.header:
        completed = _without_false_times(filled, completed)
    tables = [_table(sample, completed) for sample in filled]
    if settings.header is None:
        _check_ratings(tables, completed)
    where = filled[0].path if len(filled) == 1 else f"{filled[0].path} and others"
    times = [text for table in tables for text in table.cells("timestamp")]
    ratings = [text for table in tables for text in table.cells("rating")]
    first = day_first(times, where) if settings.day_first is None else settings.day_first
    return replace(
        completed,
        decimal=settings.decimal or decimal_sign(ratings),
        time_unit=settings.time_unit or time_unit(numbers(times), where),
        day_first=first,
    )


def table_words(samples: Sequence[Sample], settings: InputConfig) -> str:
    """Return complete settings in words, for the first file."""
    table = _table(next(sample for sample in samples if sample.lines), settings)
    assert settings.separator is not None
    parts = [Dialect(settings.separator, bool(settings.header)).words]
    if settings.header:
        parts.append(f"columns {', '.join(table.names[i] for i in table.places.values())}")
    else:
        parts.append(f"columns {', '.join(table.places)} by position")
    unread = len(table.names) - len(set(table.places.values()))
    parts += [f"{unread} more not read"] if unread else []
    parts += ["decimal comma"] if settings.decimal == "," else []
    return ", ".join([*parts, *time_words(table.cells("timestamp"), settings)])


def time_words(times: Sequence[str], settings: InputConfig) -> list[str]:
    """Return how times are written, in words."""
    if settings.day_first is not None:
        return [f"times as dates, the {'day' if settings.day_first else 'month'} first"]
    if settings.time_unit is None or not any(map(is_time, times)):
        return []
    return [f"times in {UNITS[settings.time_unit][0]}"] if numbers(times) else []


def _dialect(samples: Sequence[Sample], settings: InputConfig) -> Dialect:
    lines = [sample.lines for sample in samples]
    try:
        dialect = sniff(lines, settings.separator, settings.header, settings.columns)
    except MixedHeadersError as mixed:
        raise InputDataError(
            f"{samples[mixed.with_header].path} begins with a header and "
            f"{samples[mixed.without].path} does not: give all files one or none, or name files "
            "of one kind with input.path"
        ) from None
    if dialect is None:
        raise _no_table(samples, settings)
    return dialect


def _no_table(samples: Sequence[Sample], settings: InputConfig) -> InputDataError:
    alone = {sample.path: sniff([sample.lines], columns=settings.columns) for sample in samples}
    paths_by_delimiter: dict[str, str] = {}
    for path, dialect in alone.items():
        if dialect is not None:
            paths_by_delimiter.setdefault(DELIMITERS[dialect.delimiter], path)
    if len(paths_by_delimiter) > 1:
        (one, first), (other, second) = list(paths_by_delimiter.items())[:2]
        return InputDataError(
            f"{first} is delimited by {one} and {second} by {other}: name files of one kind with "
            "input.path"
        )
    odd = next(sample for sample in samples if alone[sample.path] is None)
    names = [*DELIMITERS.values()]
    return InputDataError(
        f"{odd.path}: is not a table of users, items and ratings: its first line, "
        f"{odd.lines[0][:_SHOWN]!r}, does not have three columns by {', '.join(names[:-1])} or "
        f"{names[-1]}: set another separator with input.delimiter"
    )


def _table(sample: Sample, settings: InputConfig) -> _Table:
    assert settings.separator is not None
    rows = [split_cells(line, settings.separator) for line in sample.lines]
    names = [name.strip() for name in rows[0]] if settings.header else [""] * usual_width(rows)
    body = rows[1:] if settings.header else rows
    if settings.header and body:
        _check_width(sample.path, len(names), body)
    return _Table(sample.path, names, body, choose_columns(names, settings, sample.path))


def _check_width(path: str, names: int, body: Rows) -> None:
    """Raise `InputDataError` if the header lacks a name: it would name the wrong columns."""
    width = usual_width(body)
    agreed = sum(len(row) == width for row in body)
    if width == names + 1 and agreed >= _MOST * len(body):
        raise InputDataError(
            f"{path}: its header names {names} columns, its lines have {width}: name every column"
        )


def _without_false_times(samples: Sequence[Sample], settings: InputConfig) -> InputConfig:
    """Leave the times out if there is no header and the fourth column does not hold times."""
    if "timestamp" in settings.columns:
        return settings
    tables = [_table(sample, settings) for sample in samples]
    if mostly_times([text for table in tables for text in table.cells("timestamp")]):
        return settings
    return replace(settings, columns={**settings.columns, "timestamp": None})


def _check_ratings(tables: Sequence[_Table], settings: InputConfig) -> None:
    """Raise `ConfigError` if there is no header and the third column does not hold ratings."""
    if settings.header or "rating" in settings.columns:
        return
    ratings = [text for table in tables for text in table.cells("rating")]
    plain = [text.replace(",", ".") for text in ratings]
    if not numbers(plain) and ratings:
        raise ConfigError(
            f"input.columns: {tables[0].path} has no header, and its third column, as in "
            f"{ratings[0][:_SHOWN]!r}, holds no ratings: set the columns by position, from 0: "
            "--set 'input.columns={user: 0, item: 1, rating: 2}'"
        )
