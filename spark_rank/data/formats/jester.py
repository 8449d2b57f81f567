"""Reads Jester's matrix: a line per user with the number of ratings, then a value per joke."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.config import InputConfig
from spark_rank.data.formats.base import Reading
from spark_rank.data.formats.lines import not_blank, read_lines, split_starts, with_line
from spark_rank.data.formats.names import named_by_line
from spark_rank.data.formats.values import read_number, typed

_NOT_RATED = 99.0
_ENDING = r"(?<=[^/])(\.csv)?(\.gz)?$"


def read_jester(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read the matrix; 99 means not rated.

    The file has no ids: a user is ``<file>:<line>``, a joke the number of its column. The names of
    several files are made distinct by their folders or endings. A line whose number of ratings is
    wrong is one malformed row.
    """
    lines = read_lines(spark, files, settings.encoding or "utf-8")
    starts = split_starts(lines)
    cells = with_line(not_blank(lines), starts).withColumn("cells", F.split("raw", ","))
    values = F.transform(
        F.slice("cells", 2, F.size("cells")),
        lambda text, i: F.struct((i + 1).cast("string").alias("item"), text.alias("rating")),
    )
    rated = F.filter(
        values, lambda v: ~F.coalesce(read_number(v.rating) == _NOT_RATED, F.lit(False))
    )
    cells = cells.withColumn("rated", rated)
    whole = read_number(F.get("cells", F.lit(0))) == F.size("rated")
    nothing = F.array(F.struct(*[F.lit("").alias(name) for name in ("item", "rating")]))
    checked = cells.withColumn("whole", F.coalesce(whole, F.lit(False)))
    entries = F.when(F.col("whole"), F.col("rated")).otherwise(nothing)
    rows = checked.withColumn("entry", F.explode(entries))
    user = named_by_line(files, _ENDING)
    parts = {"user": user, "item": F.col("entry.item"), "rating": F.col("entry.rating")}
    return Reading(typed(rows, parts, F.col("whole")), starts)
