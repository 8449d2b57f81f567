"""The scale of the ratings: its levels, told from the ratings or cut as configured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.data.tables import RATING_SCALE

# more different ratings than this are no levels
MAX_LEVELS = 100

Level = tuple[int, float, float | None, int]


def find_scale(ratings: DataFrame, cuts: Sequence[float]) -> tuple[list[Level], dict[str, Any]]:
    """Return the levels (rank, rating, lower cut, number of ratings) and the scale in words.

    Without cuts the levels are the different ratings, if there are at most `MAX_LEVELS`; else the
    scale is continuous and has none. With cuts c1 < c2 < … the levels are the intervals below c1,
    from c1 to c2, and so on, each with its middle as rating; an outermost one ends at the least or
    greatest rating. One or two passes over one column.
    """
    levels = [] if cuts else _distinct_levels(ratings)
    if levels:
        ends_of_levels = {"low": levels[0][1], "high": levels[-1][1], "levels": len(levels)}
        return levels, {"kind": "levels", **ends_of_levels}
    ends = ratings.agg(F.min("rating"), F.max("rating")).head()
    low, high = ends or (None, None)
    if low is None or high is None:
        return [], {"kind": "continuous", "low": None, "high": None, "levels": 0}
    levels = _cut_levels(ratings, cuts, low, high) if cuts else []
    kind = "cut" if cuts else "continuous"
    return levels, {"kind": kind, "low": low, "high": high, "levels": len(levels)}


def scale_table(spark: SparkSession, levels: Sequence[Level]) -> DataFrame:
    """Return the levels as the table `rating_scale`."""
    schema = ", ".join(f"{column.name} {column.type}" for column in RATING_SCALE.columns)
    return spark.createDataFrame(list(levels), schema).coalesce(1)


def _distinct_levels(ratings: DataFrame) -> list[Level]:
    found = ratings.groupBy("rating").count().limit(MAX_LEVELS + 1).collect()
    if len(found) > MAX_LEVELS:
        return []
    ordered = sorted((row["rating"], row["count"]) for row in found)
    return [(rank, rating, None, count) for rank, (rating, count) in enumerate(ordered, start=1)]


def _cut_levels(ratings: DataFrame, cuts: Sequence[float], low: float, high: float) -> list[Level]:
    # ratings are floats: a cut is compared as the float it is among them
    above = [(F.col("rating") >= F.lit(cut).cast("float")).cast("int") for cut in cuts]
    rank = sum(above, F.lit(1))
    counts = {
        row["rank"]: row["count"] for row in ratings.groupBy(rank.alias("rank")).count().collect()
    }
    edges = [min(low, cuts[0]), *cuts, max(high, cuts[-1])]
    return [
        (
            number,
            (edges[number - 1] + edges[number]) / 2,
            edges[number - 1] if number > 1 else None,
            counts.get(number, 0),
        )
        for number in range(1, len(cuts) + 2)
    ]
