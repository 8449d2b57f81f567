"""A format of rating files: its reader, the signature of its first line, its valid ratings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import InputConfig


class Reading(NamedTuple):
    """Parsed rows, and the start of each split of the text (None if the file numbers its rows).

    `rows` has ``source, block, row, raw, text_ok, fields_ok, user_id, item_id, rating, timestamp,
    timestamp_ok``, and `features` if the format has them; `starts` is the result of
    `spark_rank.data.formats.lines.split_starts`.
    """

    rows: DataFrame
    starts: DataFrame | None


Reader = Callable[[SparkSession, Sequence[str], InputConfig], Reading]


@dataclass(frozen=True)
class Format:
    """One format: example line, reader, signature of its first line, and rules.

    `levels` are the valid ratings (empty: any); `coarse_levels` are used instead if a file has no
    others. `low` and `high` are the range of ratings without levels. `implicit` is the value that
    means "not rated".
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
