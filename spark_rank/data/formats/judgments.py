"""Reads relevance judgments: judges are users, pairs of query and document are items."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark_rank.config import InputConfig
from spark_rank.data.formats.base import Reading
from spark_rank.data.formats.lines import BOM, first_lines, not_blank, read_lines, split_starts
from spark_rank.data.formats.values import read_identifier, typed
from spark_rank.errors import InputDataError

# a field begins with two capitals; a line without them continues the field above
_TAG = r"^(QN|[A-Z]{2}(?=\s|$))"
_QUERY = r"^QN\s+(\S+)"
_JUDGED = r"^(RD)?(\s+[0-9]+\s+[0-9]+)+\s*$"


def read_judgments(spark: SparkSession, files: Sequence[str], settings: InputConfig) -> Reading:
    """Read ``cfquery`` files (judges are numbered from 1) or tables with a column per judge.

    A table begins with ``query``, ``doc…`` and the judges' names, separated by tabs. An item is
    ``<query>/<document>``. Each file is read by its own first line.
    """
    encoding = settings.encoding or "utf-8"
    by_head: dict[str, list[str]] = {}
    for file, line in first_lines(spark, files, encoding).items():
        by_head.setdefault("QN" if line.startswith("QN") else line, []).append(file)
    if not by_head:
        raise InputDataError(f"{files[0]}: holds only blank lines: name a file with ratings")
    rows, starts = [], []
    for head, group in by_head.items():
        lines = read_lines(spark, group, encoding)
        rows.append(_fields(lines) if head == "QN" else _table(lines, head))
        starts.append(split_starts(lines))
    return Reading(reduce(DataFrame.unionByName, rows), reduce(DataFrame.unionByName, starts))


def _table(lines: DataFrame, header: str) -> DataFrame:
    judges = header.rstrip("\r").split("\t")[2:]
    body = not_blank(lines).where(F.ltrim("raw", F.lit(BOM)) != header.rstrip("\r"))
    cells = body.withColumn("cells", F.split("raw", "\t"))
    scores = F.array(
        *[
            F.struct(F.lit(judge).alias("judge"), F.get("cells", F.lit(i + 2)).alias("score"))
            for i, judge in enumerate(judges)
        ]
    )
    # an empty cell means that the judge has not judged
    filled = F.filter(scores, lambda s: F.trim(s.score) != "")
    item = _item(F.get("cells", F.lit(0)), F.get("cells", F.lit(1)))
    return _entries(cells, F.size("cells") == len(judges) + 2, item, filled)


def _fields(lines: DataFrame) -> DataFrame:
    """Read queries as fields ``QN, QU, NR, RD``; only the documents and scores of RD are rows.

    A QN that cannot be read is a row, too, and the query below it is unknown: a missing item is
    better than one of the query before.
    """
    above = Window.partitionBy("source").orderBy("block", "row")
    text = F.ltrim("raw", F.lit(BOM))
    tag = F.nullif(F.regexp_extract(text, _TAG, 1), F.lit(""))
    query = F.when(tag == "QN", F.regexp_extract(text, _QUERY, 1))
    placed = lines.select(
        "*",
        (query == "").alias("nameless"),
        F.last(tag, ignorenulls=True).over(above).alias("tag"),
        F.last(query, ignorenulls=True).over(above).alias("query"),
    )
    body = not_blank(placed).where((F.col("tag") == "RD") | F.col("nameless"))
    pairs = F.regexp_extract_all("raw", F.lit(r"([0-9]+)\s+[0-9]+"), 0)
    fields_ok = F.col("raw").rlike(_JUDGED)
    one = body.withColumn("fields_ok", fields_ok).withColumn(
        "pair", F.explode(F.when(fields_ok, pairs).otherwise(F.array(F.lit(""))))
    )
    cells = one.withColumn("cells", F.split("pair", r"\s+"))
    digits = F.split(F.get("cells", F.lit(1)), "")
    scores = F.transform(
        digits, lambda d, i: F.struct((i + 1).cast("string").alias("judge"), d.alias("score"))
    )
    item = _item(F.col("query"), F.get("cells", F.lit(0)))
    return _entries(cells, F.col("fields_ok"), item, scores)


def _item(query: F.Column, document: F.Column) -> F.Column:
    """Return ``<query>/<document>``, null where one of them is missing."""
    return F.concat(read_identifier(query), F.lit("/"), read_identifier(document))


def _entries(cells: DataFrame, fields_ok: F.Column, item: F.Column, scores: F.Column) -> DataFrame:
    """Return a row per judge, or one malformed row."""
    nothing = F.array(F.struct(*[F.lit("").alias(name) for name in ("judge", "score")]))
    checked = cells.withColumn("whole", fields_ok).withColumn("item", item)
    rows = checked.withColumn("entry", F.explode(F.when(F.col("whole"), scores).otherwise(nothing)))
    parts = {"user": F.col("entry.judge"), "item": F.col("item"), "rating": F.col("entry.score")}
    return typed(rows, parts, F.col("whole"))
