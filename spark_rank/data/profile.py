"""Profile of the ratings: their distribution over levels, users, items and time, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.data.filters import Activity
from spark_rank.records.data import Bins, DataProfile, RatingBin, RatingScale

# equal bins of a scale without levels
RATING_BINS = 40
# four bins to a factor of ten, each beginning at a whole number: 1, 2, 3, 6, 10, 18, 32, 56, 100 …
COUNT_BINS = tuple(dict.fromkeys(round(10 ** (i / 4)) for i in range(40)))


def data_profile(ratings: DataFrame, activity: Activity, scale: RatingScale) -> DataProfile:
    """Return counts, bins of ratings, users and items, and the times; three passes.

    Each level of the `scale` that ingest found is a bin; without levels there are `RATING_BINS` of
    equal width. A bin of users or items ends before the next begins. Density is the share of (user,
    item) pairs that are rated; None without any pair.
    """
    levels = scale.kind == "levels"
    key = F.col("rating") if levels else _equal_bin(scale.low, scale.high)
    counted = (
        ratings.groupBy(key.alias("bin"))
        .agg(
            F.count("*").alias("n"),
            F.count("timestamp").alias("timed"),
            F.min("timestamp").alias("first"),
            F.max("timestamp").alias("last"),
        )
        .collect()
    )
    counts = {row["bin"]: row["n"] for row in counted}
    first = min((row["first"] for row in counted if row["first"] is not None), default=None)
    last = max((row["last"] for row in counted if row["last"] is not None), default=None)
    pairs = activity.users * activity.items
    return DataProfile(
        ratings=activity.ratings,
        users=activity.users,
        items=activity.items,
        density=activity.ratings / pairs if pairs else None,
        user_activity=_log_binned(activity.by_user),
        item_popularity=_log_binned(activity.by_item),
        histogram=_by_level(counts) if levels else _by_bin(counts, scale.low, scale.high),
        without_time=sum(row["n"] - row["timed"] for row in counted),
        first_time=_as_text(first),
        last_time=_as_text(last),
    )


def _log_binned(counts: DataFrame) -> Bins:
    """Count rows by the bin of their `n`; bins from the first to the last that holds one."""
    above: list[Column] = [(F.col("n") >= start).cast("int") for start in COUNT_BINS]
    number = sum(above[1:], F.lit(0))
    found = {
        row["bin"]: row["count"] for row in counts.groupBy(number.alias("bin")).count().collect()
    }
    if not found:
        return ()
    bins = range(min(found), max(found) + 1)
    return tuple((COUNT_BINS[place], found.get(place, 0)) for place in bins)


def _equal_bin(low: float, high: float) -> Column:
    if high <= low:
        return F.lit(0)
    share = (F.col("rating").cast("double") - F.lit(low)) / F.lit(high - low)
    return F.least(F.floor(share * RATING_BINS).cast("int"), F.lit(RATING_BINS - 1))


def _by_level(counts: Mapping[float, int]) -> tuple[RatingBin, ...]:
    return tuple(RatingBin(rating=rating, ratings=counts[rating]) for rating in sorted(counts))


def _by_bin(counts: Mapping[int, int], low: float, high: float) -> tuple[RatingBin, ...]:
    bins = RATING_BINS if high > low else 1
    width = (high - low) / bins
    return tuple(
        RatingBin(
            low=low + place * width,
            high=low + (place + 1) * width,
            ratings=counts.get(place, 0),
        )
        for place in range(bins)
    )


def _as_text(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).date().isoformat()
