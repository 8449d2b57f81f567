"""What a format is: how it is read, how it is known, and what its ratings may be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import InputConfig


class Reading(NamedTuple):
    """Parsed rows, and where each split of the text begins (None where rows are numbered).

    `rows` has ``source, block, row, raw, text_ok, fields_ok, user_id, item_id, rating, timestamp,
    timestamp_ok``, and `features` where they are given; `starts` is what
    `spark_rank.data.formats.lines.split_starts` returns.
    """

    rows: DataFrame
    starts: DataFrame | None


Reader = Callable[[SparkSession, Sequence[str], InputConfig], Reading]


@dataclass(frozen=True)
class Format:
    """One format: example line, reader, signature of its first line, and the format's own rules.

    `levels` are the ratings that the format knows (none: any), `coarse_levels` those of its files
    that have no others, `low` and `high` their range where they are no levels, `implicit` the
    rating that means that there is none.
    """

    example: str
    read: Reader
    signature: str
    encoding: str = "utf-8"
    levels: tuple[float, ...] = ()
    coarse_levels: tuple[float, ...] = ()
    low: float | None = None
    high: float | None = None
    implicit: float | None = None
    has_features: bool = False

    def fits(self, lines: Sequence[str]) -> bool:
        """Tell whether a file that begins with these lines may be of this format."""
        return bool(lines) and re.match(self.signature, lines[0]) is not None
