"""Reads Netflix's training set: a line ``1:`` names the movie of the lines below it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import InputConfig
from spark_rank.data.formats.base import Reading
from spark_rank.data.formats.lines import not_blank, read_lines, split_starts, with_heading
from spark_rank.data.formats.values import read_day, typed

_MOVIE = r"^\s*([0-9]+)\s*:\s*$"


def read_netflix(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read ``mv_*.txt`` or combined files with Spark's own expressions; many tasks may read one.

    It defines the meaning of a line; `ingest` reads the plain lines faster, by `netflix_scan`. If
    a split begins in the middle of a movie, its heading is in an earlier split. Below a heading
    that cannot be read the movie is unknown: a missing item is better than the one before.
    """
    lines = read_lines(spark, files, settings.encoding or "utf-8")
    is_heading = F.endswith(F.rtrim("raw"), F.lit(":"))
    heading = F.when(is_heading, F.regexp_extract("raw", _MOVIE, 1))
    rows = not_blank(with_heading(lines, heading))
    # a heading with a movie is not a row; a heading without one is a row that cannot be read
    rows = rows.where(F.col("own_heading").isNull() | (F.col("own_heading") == ""))
    return Reading(parse_headed(rows), split_starts(lines))


def parse_headed(rows: DataFrame) -> DataFrame:
    """Parse lines ``user,rating,day`` whose movie is in the column `heading`."""
    fields = rows.withColumn("fields", F.split("raw", ","))
    parts = {
        "user": F.get("fields", F.lit(0)),
        "item": F.col("heading"),
        "rating": F.get("fields", F.lit(1)),
        "timestamp": F.get("fields", F.lit(2)),
    }
    return typed(fields, parts, F.size("fields") == 3, read_day(parts["timestamp"]))
