"""Makes ids from file and line, for rows without an id."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F


def named_by_line(files: Sequence[str], ending: str = "") -> Column:
    """Return the unique ``<file>:<line>`` of a row with `source` and `line`.

    The name has as many folders as make every file unique. The part of the name that matches the
    pattern `ending` is left out, unless files differ in nothing else.
    """
    path = F.col("source")
    bare = [re.sub(ending, "", file) for file in files]
    if ending and len(set(bare)) == len(set(files)):
        files, path = bare, F.regexp_replace(path, ending, "")
    name = F.regexp_extract(path, _end_of_path(_folders_that_tell(files)), 0)
    return F.concat_ws(":", name, F.col("line"))


def _folders_that_tell(files: Sequence[str]) -> int:
    """Return how many folders before the name make every file unique."""
    parts = [file.split("/") for file in files]
    count = 0
    while len({tuple(path[-count - 1 :]) for path in parts}) < len(set(files)):
        count += 1
    return count


def _end_of_path(folders: int) -> str:
    return rf"([^/]*/){{{folders}}}[^/]*$"
