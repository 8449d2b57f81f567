"""Netflix's text in records of many lines: Spark hands over one row for what were dozens.

A row per line costs several times what reading the bytes does. A record ends where a line begins
with the two digits that many lines of the files begin with; these go to the line again.
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

# a separator is found once in so many bytes at least, or lines are read one by one
_RARE = 4_096
# lines are read from so many bytes at a time: what a worker holds follows from it
_BYTES = 2**21
_START = re.compile(rb"(?=(\n[1-9][0-9]))")


def find_separator(heads: Sequence[bytes]) -> str | None:
    """Return the end of a line and the two digits that begin the next one often in every head.

    None if there are none.
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
    """Return the bytes of texts that follow one another, and where each ends, without a copy."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    return np.zeros(1, np.uint8) if data is None else np.frombuffer(data, np.uint8), ends


def lines_of_records(
    values: pa.StringArray, separator: str, begins_file: bool
) -> Iterator[tuple[ByteArray, Ends]]:
    """Yield the lines of records, some megabytes at a time, as `text_of` returns texts.

    Only the record that begins a file has no separator before it. A file that ends with the end
    of a line has an empty line more.
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
        # what separates records begins with a line feed
        if before != 13:
            line += 1
            line_ends[line] = at
    return lines, line_ends[: line + 1]
