"""Recognises how a table is written as text: its delimiter, and whether it has a header."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spark_rank.data.formats.columns import NEEDED, named_roles

BLANKS = " "
# the delimiters that are tried, the least ambiguous first
DELIMITERS = {
    "\t": "tab", "::": "double colon", ";": "semicolon", "|": "pipe", ",": "comma",
    BLANKS: "blanks",
}  # fmt: skip
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+\s*")
_FOREIGN = re.compile(r"[\t;|,]|::")
_RUN = re.compile(r"[ \t]+")
# so many lines of a file are examined, and a few of them may be damaged
_LINES = 500
_MOST = 0.8
# replaces a separator of two characters, since Python's csv takes only one
_UNIT = "\x1f"

Rows = list[list[str]]


@dataclass(frozen=True)
class Dialect:
    """The delimiter of the cells, and whether the first line names the columns."""

    delimiter: str
    header: bool

    @property
    def words(self) -> str:
        """Return the dialect in words."""
        name = DELIMITERS.get(self.delimiter, repr(self.delimiter))
        return f"delimiter {name}, {'header' if self.header else 'no header'}"


class MixedHeadersError(Exception):
    """Some samples begin with a header and some do not; has the position of one of each."""

    def __init__(self, with_header: int, without: int) -> None:
        super().__init__(with_header, without)
        self.with_header, self.without = with_header, without


@dataclass(frozen=True)
class _Fit:
    """How well a separator fits some lines.

    `evidence` is 0 for no table, `regular` the share of lines of the usual width, and `clean` the
    share of cells without signs of another separator.
    """

    evidence: int
    regular: float
    clean: float


def split_cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line; a line that cannot be split is a single cell."""
    sign = delimiter
    if delimiter == BLANKS:
        line = _single_blanks(line)
    elif len(delimiter) > 1:
        line, sign = line.replace(delimiter, _UNIT), _UNIT
    try:
        cells = next(csv.reader(io.StringIO(line), delimiter=sign), [])
    except csv.Error:  # a cell of more than 128 KB, or a quote that never ends
        return [line.replace(_UNIT, delimiter)]
    return [cell.replace(sign, delimiter) for cell in cells] if sign != delimiter else cells


def sniff(
    samples: Sequence[Sequence[str]],
    delimiter: str | None = None,
    header: bool | None = None,
    columns: Mapping[str, str | None] | None = None,
) -> Dialect | None:
    """Return the dialect of files by their first lines; None if they are not a table.

    A sample is the first lines of one file, without blank ones. A given `delimiter` or `header` is
    taken as it is.
    Raise `MixedHeadersError` if the samples contradict each other.
    """
    filled = [sample[:_LINES] for sample in samples if sample]
    chosen = _best_delimiter(filled, columns or {}) if delimiter is None else delimiter
    if chosen is None:
        return None
    if header is not None:
        return Dialect(chosen, header)
    headers = [has_header([split_cells(line, chosen) for line in s], columns or {}) for s in filled]
    if len(set(headers)) > 1:
        raise MixedHeadersError(headers.index(True), headers.index(False))
    return Dialect(chosen, headers[0])


def has_header(rows: Rows, columns: Mapping[str, str | None]) -> bool:
    """Tell whether the first row names the columns.

    It does if its names are known, or if it has text where the rows below have numbers.
    """
    first, body = rows[0], rows[1:]
    roles = named_roles(first, columns)
    if len(roles) > 1 or (roles and len(first) == 1):
        return True
    width = usual_width(rows)
    if len(first) != width:
        return False
    if not body:
        return bool(roles) or not any(_is_numeric(cell) for cell in first)
    numeric = [i for i in range(width) if _mostly_numbers([row[i : i + 1] for row in body])]
    if numeric:
        return not any(_is_numeric(first[i]) for i in numeric)
    return bool(roles) or not any(_is_numeric(cell) for cell in first)


def is_table(lines: Sequence[str], delimiter: str, columns: Mapping[str, str | None]) -> bool:
    """Tell whether lines have three columns with this separator, or name those needed."""
    return _fit(lines, delimiter, columns).evidence > 0


def _best_delimiter(
    samples: Sequence[Sequence[str]], columns: Mapping[str, str | None]
) -> str | None:
    """Return the delimiter that fits all files best; among equals the first of `DELIMITERS`.

    Blanks also occur in names and texts, so they are tried only if nothing else makes a table.
    """
    best, chosen = _Fit(0, 0.0, 0.0), None
    for delimiter in DELIMITERS:
        if delimiter == BLANKS and best.evidence > 1:
            break
        fits = [_fit(sample, delimiter, columns) for sample in samples]
        if not fits:
            return None
        worst = _Fit(
            min(fit.evidence for fit in fits),
            min(fit.regular for fit in fits),
            sum(fit.clean for fit in fits) / len(fits),
        )
        if worst.evidence and _key(worst) > _key(best):
            best, chosen = worst, delimiter
    return chosen


def _key(fit: _Fit) -> tuple[int, float, float]:
    return fit.evidence, fit.clean, fit.regular


def _fit(lines: Sequence[str], delimiter: str, columns: Mapping[str, str | None]) -> _Fit:
    rows = [split_cells(line, delimiter) for line in lines]
    width = usual_width(rows)
    regular = sum(len(row) == width for row in rows) / len(rows)
    cells = [cell for row in rows for cell in row]
    foreign = sum(_is_foreign(cell, delimiter) for cell in cells)
    fit = _Fit(0, regular, 1 - foreign / len(cells)) if cells else _Fit(0, 0.0, 0.0)
    if named_roles(rows[0], columns) == set(NEEDED):
        return replace(fit, evidence=3)
    if width < len(NEEDED) or regular < _MOST:
        return fit
    body = rows[1:] or rows
    numbers = any(_mostly_numbers([row[i : i + 1] for row in body]) for i in range(width))
    if delimiter == BLANKS and not numbers:  # a sentence
        return fit
    return replace(fit, evidence=2 if numbers else 1)


def _is_foreign(cell: str, delimiter: str) -> bool:
    """Tell whether a cell contains another separator."""
    return bool(_FOREIGN.search(cell)) and delimiter not in cell and not _is_numeric(cell)


def usual_width(rows: Rows) -> int:
    """Return the most frequent number of cells per row."""
    counts = Counter(map(len, rows))
    return max(counts, key=lambda width: (counts[width], width))


def _mostly_numbers(cells: Sequence[Sequence[str]]) -> bool:
    filled = [cell[0] for cell in cells if cell and cell[0].strip()]
    return bool(filled) and sum(map(_is_numeric, filled)) >= _MOST * len(filled)


def _is_numeric(text: str) -> bool:
    return bool(NUMBER.fullmatch(text) or DECIMAL_COMMA.fullmatch(text))


def _single_blanks(line: str) -> str:
    """Replace every run of blanks and tabs outside quotes by a single blank."""
    parts = line.strip(" \t").split('"')
    return '"'.join(part if i % 2 else _RUN.sub(" ", part) for i, part in enumerate(parts))
