"""Reads text files as lines with their file, split, order, number and heading."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark_rank.session.filesystem import Filesystem, literal

BOM = "\ufeff"
# headings are joined by chunks of 4,096 rows: few rows to join, and few per key
_CHUNK_BITS = 12


def read_lines(spark: SparkSession, files: Sequence[str], encoding: str | None) -> DataFrame:
    """Return ``source, block, row, raw, text_ok``: one row per line, blank lines included.

    `block` is the start of the split in the file, in bytes; `row` grows by one from line to line
    of a split. Together they give the order of the lines of a file that many tasks read.
    """
    raw, readable = line_text(F.col("value"), encoding)
    return spark.read.text([literal(file) for file in files]).select(
        F.col("_metadata.file_path").alias("source"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("row"),
        raw.alias("raw"),
        readable.alias("text_ok"),
    )


def line_text(value: Column, encoding: str | None) -> tuple[Column, Column]:
    """Return a line's text without its end, and whether its bytes are text in the encoding.

    Without an encoding, a line that is not UTF-8 is read as Latin-1.
    """
    latin = F.decode(value.cast("binary"), "ISO-8859-1")
    if encoding == "latin-1":
        text, readable = latin, F.lit(True)
    elif encoding is None:
        text, readable = F.when(F.is_valid_utf8(value), value).otherwise(latin), F.lit(True)
    else:
        text, readable = F.make_valid_utf8(value), F.is_valid_utf8(value)
    return F.rtrim(text, F.lit("\r")), readable


def not_blank(lines: DataFrame) -> DataFrame:
    """Drop blank lines."""
    return lines.where(F.trim("raw") != "")


def split_starts(lines: DataFrame) -> DataFrame:
    """Return ``source, block, first_row, lines_before`` of every split, in one pass over the text.

    `lines_before` counts the lines of the file before the split.
    """
    splits = lines.groupBy("source", "block").agg(
        F.min("row").alias("first_row"), F.count("*").alias("lines")
    )
    earlier = (
        Window.partitionBy("source")
        .orderBy("block")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    before = F.sum("lines").over(earlier) - F.col("lines")
    return splits.select("source", "block", "first_row", before.alias("lines_before"))


def with_line(rows: DataFrame, starts: DataFrame) -> DataFrame:
    """Add `line`, the number of the line in its file, from 1."""
    line = F.col("lines_before") + F.col("row") - F.col("first_row") + 1
    joined = rows.join(F.broadcast(starts), ["source", "block"], "left")
    return joined.withColumn("line", line).drop("first_row", "lines_before")


def with_heading(lines: DataFrame, heading: Column) -> DataFrame:
    """Add `own_heading`, and `heading`: that of the nearest heading line above in the same file.

    The expression `heading` is null on all other lines. Splits are searched in parallel; only
    their headings, a few per thousand lines, are sorted and broadcast. The nearest heading may be
    in another split, or missing (null).
    """
    marked = lines.withColumn("own_heading", heading)
    segments = _segments(marked)
    chunk = F.shiftright("row", _CHUNK_BITS)
    place = (
        (F.col("chunk") == F.col("segment_chunk"))
        & (F.col("row") >= F.col("start"))
        & (F.col("row") < F.col("end"))
    )
    joined = marked.withColumn("chunk", chunk).join(F.broadcast(segments), place, "left")
    return joined.drop("chunk", "segment_chunk", "start", "end")


def _segments(marked: DataFrame) -> DataFrame:
    """Return ``segment_chunk, start, end, heading``: the ranges of rows under each heading."""
    # one group per heading, and one per split for its other lines: a small hash table
    heading_row = F.when(F.col("own_heading").isNotNull(), F.col("row"))
    groups = marked.groupBy(
        "source", "block", heading_row.alias("row"), F.col("own_heading").alias("heading")
    ).agg(F.min("row").alias("first_row"), F.max("row").alias("last_row"))
    of_split = Window.partitionBy("source", "block")
    starts = groups.select(
        "source",
        "block",
        "heading",
        F.coalesce("row", F.min("first_row").over(of_split)).alias("row"),
        F.max("last_row").over(of_split).alias("last_row"),
    )
    # a split that begins with a heading has two entries for one row: the heading is the second
    order = ("block", "row", F.col("heading").asc_nulls_first())
    above = Window.partitionBy("source").orderBy(*order)
    after = Window.partitionBy("source", "block").orderBy(*order[1:])
    segments = starts.select(
        F.col("row").alias("start"),
        F.coalesce(F.lead("row").over(after), F.col("last_row") + 1).alias("end"),
        F.last("heading", ignorenulls=True).over(above).alias("heading"),
    ).where(F.col("start") < F.col("end"))
    chunks = F.sequence(
        F.shiftright("start", _CHUNK_BITS), F.shiftright(F.col("end") - 1, _CHUNK_BITS)
    )
    return segments.select(F.explode(chunks).alias("segment_chunk"), "start", "end", "heading")


def first_lines(spark: SparkSession, files: Sequence[str], encoding: str) -> dict[str, str]:
    """Return the first line of each file that is not blank; files without one are left out."""
    filesystem = Filesystem(spark)
    lines = {file: filesystem.first_lines(file, encoding, 1) for file in files}
    return {file: head[0].removeprefix(BOM) for file, head in lines.items() if head}
