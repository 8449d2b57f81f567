"""Names for what has no id of its own: file and line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F


def named_by_line(files: Sequence[str], ending: str = "") -> Column:
    """Return ``<file>:<line>`` of a row with `source` and `line`, which no other file has.

    Before the name stand as many folders as tell every file from the others. What the pattern
    `ending` finds at the name's end is left out, unless files differ in nothing else.
    """
    path = F.col("source")
    bare = [re.sub(ending, "", file) for file in files]
    if ending and len(set(bare)) == len(set(files)):
        files, path = bare, F.regexp_replace(path, ending, "")
    name = F.regexp_extract(path, _end_of_path(_folders_that_tell(files)), 0)
    return F.concat_ws(":", name, F.col("line"))


def _folders_that_tell(files: Sequence[str]) -> int:
    """Return how many folders before its name tell every file from the others."""
    parts = [file.split("/") for file in files]
    count = 0
    while len({tuple(path[-count - 1 :]) for path in parts}) < len(set(files)):
        count += 1
    return count


def _end_of_path(folders: int) -> str:
    return rf"([^/]*/){{{folders}}}[^/]*$"
