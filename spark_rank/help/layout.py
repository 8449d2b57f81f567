"""Lines and columns of plain text, as wide as the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

_NARROWEST, _USUAL = 79, 100
_LEAST_ROOM = 30


def width() -> int:
    """Return how many characters a line may have."""
    return max(_NARROWEST, shutil.get_terminal_size((_USUAL, 0)).columns - 1)


def columns(rows: Sequence[Sequence[str]], *, whole: bool = False) -> list[str]:
    """Return the rows as aligned columns; the last one is cut where the line ends, or goes on."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    lines = []
    for *cells, last in rows:
        head = "  " + "".join(f"{cell:<{size}}  " for cell, size in zip(cells, widths, strict=True))
        room = width() - len(head)
        parts = textwrap.wrap(last, max(room, _LEAST_ROOM)) if whole else [cut(last, room)]
        lines += [f"{head}{(parts or [''])[0]}".rstrip()]
        lines += [f"{' ' * len(head)}{part}" for part in parts[1:]]
    return lines


def cut(text: str, length: int) -> str:
    """Return text that is no longer than this; what is left out is an ellipsis, behind a word."""
    if len(text) <= length:
        return text
    return f"{text[: length - 2].rsplit(' ', 1)[0].rstrip(',;:')} …"


def paragraph(text: str, indent: str = "") -> str:
    """Return text in lines that can be read."""
    return textwrap.fill(
        text, min(width(), _USUAL), initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
