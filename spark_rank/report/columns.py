"""Text in columns for the console, aligned by displayed width, wide characters included."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

Row = Sequence[str]


def width(text: str) -> int:
    """Return how many places of a terminal a text takes."""
    return sum(map(_places, text))


def cut(text: str, most: int) -> str:
    """Return the text cut to at most `most` places; a cut text ends in an ellipsis."""
    if width(text) <= most:
        return text
    kept, places_left = [], most - 1
    for character in text:
        places_left -= _places(character)
        if places_left < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def pad(text: str, places: int, *, right: bool = False) -> str:
    """Return the text padded with blanks to so many places; `right` aligns it to the right."""
    blanks = " " * (places - width(text))
    return blanks + text if right else text + blanks


def in_columns(rows: Sequence[Row], numbers: Sequence[bool]) -> list[str]:
    """Return rows as lines of aligned columns; columns of numbers are aligned to the right."""
    if not rows:
        return []
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(pad(cell, places, right=right)
                  for cell, places, right in zip(row, widths, numbers, strict=True))
        for row in rows
    ]  # fmt: skip


def side_by_side(left: Sequence[str], right: Sequence[str], gap: int = 3) -> list[str]:
    """Return two blocks of lines beside each other."""
    places = max(map(width, left), default=0) + gap
    lines = max(len(left), len(right))
    return [
        (pad(left[n] if n < len(left) else "", places)
         + (right[n] if n < len(right) else "")).rstrip()
        for n in range(lines)
    ]  # fmt: skip


def _places(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
