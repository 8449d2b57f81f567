"""Records of many lines: their separator, and that they have the lines of the text."""

from __future__ import annotations

import re
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.data.formats import netflix_records
from spark_rank.data.formats.netflix_records import find_separator, lines_of_records

RATING = b"%d,3,2005-09-06\n"


@given(text=st.text("\r\n157:é", max_size=60), begins_file=st.booleans(), limit=st.integers(1, 9))
def test_lines_are_those_of_the_text(text: str, begins_file: bool, limit: int) -> None:
    records = pa.array(["before", *text.split("\n15")])[1:]
    whole = (text if begins_file else "15" + text) + "\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(netflix_records, "_BYTES", limit)
        parts = list(lines_of_records(records, "\n15", begins_file))
    lines = [
        bytes(data[start:stop]).decode()
        for data, ends in parts
        for start, stop in pairwise(ends.tolist())
    ]
    assert lines == re.split("\r\n|\r|\n", whole)[:-1]


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ([], None),
        ([b""], None),
        ([b"7:\n" + RATING % 1], None),
        ([b"7:\n" + RATING % 15], "\n15"),
        # a separator must be in every file, and not be rare in any
        ([RATING * 3 % (1, 15, 16), RATING * 3 % (1, 16, 17)], "\n16"),
        ([RATING * 3 % (1, 15, 15), RATING * 3 % (1, 16, 17)], None),
        ([RATING * 2 % (1, 15) + b"x" * 5000], None),
        # as often: the first
        ([RATING * 3 % (1, 23, 15)], "\n15"),
        ([RATING * 4 % (1, 23, 15, 23)], "\n23"),
    ],
)
def test_what_many_lines_begin_with_separates(heads: list[bytes], expected: str | None) -> None:
    assert find_separator(heads) == expected
