"""Reads the first lines of a few files, from which the driver recognises how all are written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spark_rank.session.filesystem import Filesystem

# at most so many files are examined, and so many bytes of each
MOST_FILES = 16
HEAD = 1 << 16
_LINE_END = re.compile("\r\n|\n|\r")
_BOM = "\ufeff"


@dataclass(frozen=True)
class Sample:
    """The first lines of a file, without blank lines and byte order mark."""

    path: str
    lines: tuple[str, ...]


def spread(paths: Sequence[str]) -> list[str]:
    """Return at most `MOST_FILES` of the files; the choice depends on their names alone."""
    ordered = sorted(paths)
    if len(ordered) <= MOST_FILES:
        return ordered
    last = len(ordered) - 1
    return [ordered[last * i // (MOST_FILES - 1)] for i in range(MOST_FILES)]


def read_samples(
    filesystem: Filesystem, paths: Sequence[str], encoding: str = "utf-8"
) -> list[Sample]:
    """Return samples of a few of the files."""
    return [
        Sample(path, whole_lines(filesystem.unpacked_head(path, HEAD), HEAD, encoding))
        for path in spread(paths)
    ]


def whole_lines(head: bytes, size: int, encoding: str) -> tuple[str, ...]:
    """Return the lines of a file's first `size` bytes, without the last one if it is cut off.

    A first line that is longer than `size` is kept as far as it goes. Bytes that are not text in
    the encoding are replaced; they do not matter for recognising the table.
    """
    lines = _LINE_END.split(head.decode(encoding, "replace").removeprefix(_BOM))
    whole = lines[:-1] if len(head) >= size and any(map(str.strip, lines[:-1])) else lines
    return tuple(line for line in whole if line.strip())
