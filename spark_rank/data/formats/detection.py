"""Which format a file is of, by its first lines: to name a wrong `input.format` before the run."""

from __future__ import annotations

from collections.abc import Sequence

from spark_rank.config import InputConfig
from spark_rank.data.formats import FORMATS
from spark_rank.data.formats.values import split_cells
from spark_rank.errors import ConfigError


def check_format(file: str, lines: Sequence[str], settings: InputConfig) -> None:
    """Raise `ConfigError` if the first lines are not of the format set, but clearly of another.

    Lines that fit no format are no reason: broken ones are quarantined, with their reasons.
    """
    chosen = settings.format
    if not lines or _fits(lines, settings):
        return
    found = [name for name, known in FORMATS.items() if name != chosen and known.fits(lines)]
    if found:
        raise ConfigError(
            f"input.format: {file} does not look like {chosen!r}: its first line is "
            f"{lines[0][:60]!r}, as in {' or '.join(map(repr, found))}: say input.format={found[0]}"
        )


def _fits(lines: Sequence[str], settings: InputConfig) -> bool:
    if settings.format != "csv":
        return FORMATS[settings.format].fits(lines)
    cells = split_cells(lines[0], settings.separator)
    named = any(not _is_number(cell) for cell in cells)
    return len(cells) >= 3 and (named or not settings.header)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
