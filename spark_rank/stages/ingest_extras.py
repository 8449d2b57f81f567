"""Data that may come with the ratings: titles and content of items, given feature vectors."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.config import InputConfig
from spark_rank.data.damage import damaged_files_are_named
from spark_rank.data.formats.content_tables import read_content
from spark_rank.data.formats.titles import detect_title_format, read_titles
from spark_rank.errors import InputDataError
from spark_rank.stages.ingest_inputs import files_of
from spark_rank.store.run import Run
from spark_rank.tables.contracts import GIVEN_FEATURES, ITEM_CONTENT, ITEMS, TITLES


@dataclass(frozen=True)
class Titles:
    """The titles in a file (`item_id, title, year`), and how many lines cannot be read."""

    lines: DataFrame
    unreadable: int


def find_titles(settings: InputConfig, run: Run) -> Titles | None:
    """Read the file of titles, if `input.titles` is set."""
    if settings.titles is None:
        return None
    files = [info.path for info in files_of("input.titles", settings.titles, run)]
    name = settings.titles_format or detect_title_format(run.files, files[0])
    lines = read_titles(run.spark, files, name)
    whole = F.col("item_id").isNotNull() & F.col("title").isNotNull()
    with damaged_files_are_named(run.root):
        counted = lines.agg(F.count_if(whole), F.count_if(~whole)).head()
    readable, unreadable = counted or (0, 0)
    if readable == 0:
        raise InputDataError(
            f"{settings.titles}: no line is a title in the format {name!r}: name another with "
            "input.titles_format"
        )
    return Titles(lines.where(whole), unreadable)


def write_titles(titles: Titles | None, run: Run) -> dict[str, int]:
    """Write the table `titles`, if there are any; an item with several titles gets the least."""
    if titles is None:
        return {}
    least = F.min(F.struct("title", "year")).alias("best")
    one = titles.lines.groupBy("item_id").agg(least)
    items = run.written(ITEMS).select("item_id", "item")
    named = one.join(items, "item_id", "left").select("item_id", "item", "best.title", "best.year")
    return {TITLES.table: run.write(TITLES, named)}


def find_item_content(settings: InputConfig, run: Run) -> DataFrame | None:
    """Return ``item_id, name, value`` of the table that describes items, if `input.items` is set.

    Raise `InputDataError` if it has no value.
    """
    if settings.items is None:
        return None
    files = [info.path for info in files_of("input.items", settings.items, run)]
    with damaged_files_are_named(run.root):
        content = run.keep(read_content(run.spark, files), "item_content")
        if content.isEmpty():
            raise InputDataError(
                f"{settings.items}: has no column beside the id, or no value in it: give a table "
                "with the item's id first, or leave input.items out"
            )
    return content.withColumnRenamed("id", "item_id")


def write_item_content(content: DataFrame | None, run: Run) -> dict[str, int]:
    """Write the table `item_content`, if there is any."""
    if content is None:
        return {}
    numbered = content.join(run.written(ITEMS).select("item_id", "item"), "item_id")
    rows = numbered.select("item_id", "item", "name", "value")
    return {ITEM_CONTENT.table: run.write(ITEM_CONTENT, rows)}


def write_given_features(good: DataFrame, run: Run) -> dict[str, int]:
    """Write the table `given_features`: vectors of equal length, zeros at the end.

    A document that is judged twice gets the least of its vectors.
    """
    width = good.agg(F.max(F.size("features"))).head()
    missing = F.lit(width[0] if width else 0) - F.size("features")
    padded = F.concat("features", F.array_repeat(F.lit(0.0).cast("float"), missing))
    vectors = good.select("user_id", "item_id", padded.alias("features"))
    one = vectors.groupBy("user_id", "item_id").agg(F.min("features").alias("features"))
    return {GIVEN_FEATURES.table: run.write(GIVEN_FEATURES, one)}
