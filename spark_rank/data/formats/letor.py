"""Reads LETOR: ``label qid:10 1:0.0 2:0.5 … #docid = 244338``, one problem per query."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import InputConfig
from spark_rank.data.formats.base import Reading
from spark_rank.data.formats.lines import not_blank, read_lines, split_starts, with_line
from spark_rank.data.formats.names import named_by_line
from spark_rank.data.formats.values import typed

# all vectors get the length of the longest: one large feature number would fill memory with zeros
MAX_FEATURES = 10_000
_DOCUMENT = r"docid\s*=\s*(\S+)"
_VALUE = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_PAIR = rf"^[0-9]{{1,6}}:{_VALUE}$"


def read_letor(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read judged documents with their feature vectors: a query is a user, its label the rating.

    An item is ``<query>/<document>``. If the comment names no document, it is
    ``<query>/<file>:<line>``, with as many folders before the file's name as make it unique.
    Missing features are 0.
    """
    lines = read_lines(spark, files, settings.encoding or "utf-8")
    starts = split_starts(lines)
    body = F.trim(F.regexp_extract("raw", "^[^#]*", 0))
    cells = with_line(not_blank(lines), starts).withColumn("cells", F.split(body, r"\s+"))
    cells = cells.withColumn("pairs", F.slice("cells", 3, F.size("cells")))
    query = F.regexp_extract(F.get("cells", F.lit(1)), r"^qid:(.*)$", 1)
    comment = F.regexp_extract("raw", "#(.*)$", 1)
    named = F.nullif(F.regexp_extract(comment, _DOCUMENT, 1), F.lit(""))
    document = F.coalesce(named, named_by_line(files))
    readable = (
        F.get("cells", F.lit(1)).startswith("qid:")
        & (F.size("pairs") > 0)
        & F.forall("pairs", lambda p: p.rlike(_PAIR))
    )
    parts = {
        "user": query,
        "item": F.when(query != "", F.concat_ws("/", query, document)),
        "rating": F.get("cells", F.lit(0)),
    }
    checked = cells.withColumn("readable", F.coalesce(readable, F.lit(False)))
    numbers = F.transform("pairs", lambda p: F.split_part(p, F.lit(":"), F.lit(1)).try_cast("int"))
    # feature numbers are from 1, and each occurs once
    valid_numbers = (
        (F.array_min(numbers) >= 1)
        & (F.array_max(numbers) <= MAX_FEATURES)
        & (F.size(F.array_distinct(numbers)) == F.size("pairs"))
    )
    whole = F.col("readable") & F.coalesce(valid_numbers, F.lit(False))
    rows = checked.withColumn("whole", whole)
    return Reading(
        typed(rows, parts, F.col("whole"), features=F.when(F.col("whole"), _vector(numbers))),
        starts,
    )


def _vector(numbers: Column) -> Column:
    """Return the values in the order of feature numbers, up to the greatest of the line."""
    values = F.transform("pairs", lambda p: F.split_part(p, F.lit(":"), F.lit(2)).try_cast("float"))
    complete = F.sequence(F.lit(1), F.array_max(numbers))
    by_number = F.map_from_arrays(numbers, values)
    sparse = F.transform(
        complete, lambda n: F.coalesce(F.element_at(by_number, n), F.lit(0.0).cast("float"))
    )
    # most lines have every feature in order, and need no lookup
    return F.when(numbers == complete, values).otherwise(sparse)
