"""Reads Netflix's text in records of many lines, so that Spark passes one row for dozens of lines.

A row per line takes several times as long as reading the bytes. Records are separated by a line end
and two digits with which many lines begin; the digits are put back in front of the line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.compiled import njit

ByteArray = NDArray[np.uint8]
Ends = NDArray[np.int32]

# a separator must occur at least once in so many bytes; else lines are read one by one
_RARE = 4_096
# bytes that are split into lines at a time, which limits a worker's memory
_BYTES = 2**21
_START = re.compile(rb"(?=(\n[1-9][0-9]))")


def find_separator(heads: Sequence[bytes]) -> str | None:
    """Return a line end with two digits that often begin the next line in every head.

    None if there is no such pair of digits.
    """
    counts = [Counter(_START.findall(head)) for head in heads]
    shared = set.intersection(*map(set, counts)) if counts else set()
    often = {
        start
        for start in shared
        if all(count[start] * _RARE >= len(head) for count, head in zip(counts, heads, strict=True))
    }
    if not often:
        return None
    return max(sorted(often), key=lambda start: min(count[start] for count in counts)).decode()


def text_of(values: pa.StringArray) -> tuple[ByteArray, Ends]:
    """Return the bytes of all texts end to end, and the end of each, without a copy."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    return np.zeros(1, np.uint8) if data is None else np.frombuffer(data, np.uint8), ends


def lines_of_records(
    values: pa.StringArray, separator: str, begins_file: bool
) -> Iterator[tuple[ByteArray, Ends]]:
    """Yield the lines of records, some megabytes at a time, in the form of `text_of`.

    Only the first record of a file has no separator before it. A file that ends with a line end
    has one more, empty line.
    """
    text, ends = text_of(values)
    start = np.frombuffer(separator[1:].encode(), np.uint8)
    first = 0
    while first < len(values):
        last = int(np.searchsorted(ends, int(ends[first]) + _BYTES, side="right"))
        last = min(max(last - 1, first + 1), len(values))
        yield _split_records(text, ends[first : last + 1], start, begins_file and first == 0)
        first = last


@njit(cache=True)
def _split_records(
    text: ByteArray, ends: Ends, start: ByteArray, begins_file: bool
) -> tuple[ByteArray, Ends]:
    """Return the lines, which end with a line feed, a carriage return, or both. O(bytes)."""
    records = len(ends) - 1
    size = ends[-1] - ends[0] + records * len(start)
    lines = np.empty(size, np.uint8)
    line_ends = np.empty(size + records + 1, np.int32)
    line_ends[0] = 0
    at, line = 0, 0
    for record in range(records):
        if record > 0 or not begins_file:
            for digit in start:
                lines[at] = digit
                at += 1
        before = 0
        for place in range(ends[record], ends[record + 1]):
            byte = text[place]
            if byte == 13 or (byte == 10 and before != 13):
                line += 1
                line_ends[line] = at
            elif byte != 10:
                lines[at] = byte
                at += 1
            before = byte
        # the separator of records begins with a line feed, which ends this line
        if before != 13:
            line += 1
            line_ends[line] = at
    return lines, line_ends[: line + 1]
