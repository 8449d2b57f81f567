"""Finds the rating scale: its levels are known, found in the ratings, or cut as configured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import InputConfig
from spark_rank.data.formats import FORMATS
from spark_rank.data.quality import allowed_ratings
from spark_rank.records.data import RatingScale
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import RATING_SCALE

# with more distinct ratings than this, the scale has no levels
MAX_LEVELS = 100

Level = tuple[int, float, float | None, int]


@dataclass(frozen=True)
class KnownScale:
    """What configuration and format say about the scale, in stored precision.

    `levels` are possible scales: the first that contains all ratings is used. Without one the
    levels are the distinct ratings, unless the scale is `continuous`. If `low` or `high` is None,
    it is found in the ratings.
    """

    levels: tuple[tuple[float, ...], ...] = ()
    low: float | None = None
    high: float | None = None
    continuous: bool = False


def known_scale(settings: InputConfig) -> KnownScale:
    """Return what configuration and format say about the scale.

    Configured bounds are the ends of the scale; they do not give levels.
    """
    levels, low, high = allowed_ratings(settings)
    file_format = FORMATS[settings.known_format]
    coarse = () if settings.levels or not levels else file_format.coarse_levels
    ends = [_as_stored([end])[0] if math.isfinite(end) else None for end in (low, high)]
    return KnownScale(
        levels=tuple(_as_stored(scale) for scale in (coarse, levels) if scale),
        low=ends[0],
        high=ends[1],
        continuous=not levels and file_format.low is not None,
    )


def find_scale(
    ratings: DataFrame, cuts: Sequence[float], known: KnownScale | None = None
) -> tuple[list[Level], RatingScale]:
    """Return the levels (rank, rating, lower cut, number of ratings) and the kind of scale.

    Without cuts the levels are the known ones, even those that nobody used; else the distinct
    ratings, if there are at most `MAX_LEVELS`; else the scale is continuous and has no levels.
    With cuts c1 < c2 < … the levels are the intervals below c1, from c1 to c2, and so on. The
    rating of an interval is its middle; the outer intervals end at the ends of the scale. It takes
    one or two passes over one column.
    """
    known = known or KnownScale()
    levels = [] if cuts or known.continuous else _levels(ratings, known.levels)
    if levels:
        ends = levels[0][1], levels[-1][1]
        low, high = ends if known.levels else _ends(known, *ends)
        return levels, RatingScale("levels", low, high, len(levels))
    least, greatest = ratings.agg(F.min("rating"), F.max("rating")).head() or (None, None)
    # without ratings, which raises an error later, a scale has no ends
    low, high = _ends(known, least or 0.0, greatest or 0.0)
    if cuts:
        levels = _cut_levels(ratings, cuts, low, high)
    return levels, RatingScale("cut" if cuts else "continuous", low, high, len(levels))


def scale_table(spark: SparkSession, levels: Sequence[Level]) -> DataFrame:
    """Return the levels as the table `rating_scale`."""
    schema = arrow_schema(RATING_SCALE.columns)
    rows = [dict(zip(schema.names, level, strict=True)) for level in levels]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema)).coalesce(1)


def _as_stored(ratings: Sequence[float]) -> tuple[float, ...]:
    """Return the distinct numbers in the precision of stored ratings, ascending."""
    return tuple(sorted({float(np.float32(rating)) for rating in ratings}))


def _ends(known: KnownScale, low: float, high: float) -> tuple[float, float]:
    return (
        low if known.low is None else known.low,
        high if known.high is None else known.high,
    )


def _levels(ratings: DataFrame, scales: Sequence[tuple[float, ...]]) -> list[Level]:
    most = max([MAX_LEVELS, *map(len, scales)])
    rows = ratings.groupBy("rating").count().limit(most + 1).collect()
    if len(rows) > most:
        return []
    counts = {row["rating"]: row["count"] for row in rows}
    chosen = next((scale for scale in scales if counts.keys() <= set(scale)), sorted(counts))
    return [
        (rank, rating, None, counts.get(rating, 0)) for rank, rating in enumerate(chosen, start=1)
    ]


def _cut_levels(ratings: DataFrame, cuts: Sequence[float], low: float, high: float) -> list[Level]:
    # ratings are stored as floats, so a cut is compared as a float
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
