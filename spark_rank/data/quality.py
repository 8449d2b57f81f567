"""Which parsed rows are ratings, and the reason why each of the others is not."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_rank.config import InputConfig

NOT_UTF8 = "not_utf8"
MALFORMED = "malformed_row"
MISSING_USER = "missing_user"
MISSING_ITEM = "missing_item"
UNREADABLE_RATING = "unreadable_rating"
NOT_FINITE = "rating_not_finite"
OUT_OF_RANGE = "rating_out_of_range"
UNREADABLE_TIMESTAMP = "unreadable_timestamp"
DUPLICATE = "duplicate"

# beyond this no rating scale goes, and sums over ratings (kept as integers) could overflow
MAX_RATING = 1.0e6


def with_reason(parsed: DataFrame, settings: InputConfig) -> DataFrame:
    """Add `reason`: null for a good row, else the first rule that the row breaks."""
    rating = F.col("rating")
    rules: list[tuple[str, Column]] = [
        (NOT_UTF8, ~F.col("utf8_ok")),
        (MALFORMED, ~F.col("fields_ok")),
        (MISSING_USER, F.col("user_id").isNull()),
        (MISSING_ITEM, F.col("item_id").isNull()),
        (UNREADABLE_RATING, rating.isNull()),
        (NOT_FINITE, F.isnan(rating) | (F.abs(rating) == float("inf"))),
        (OUT_OF_RANGE, _outside(rating, settings)),
        (UNREADABLE_TIMESTAMP, ~F.col("timestamp_ok")),
    ]
    reason = F.lit(None).cast("string")
    for name, broken in reversed(rules):
        reason = F.when(broken, F.lit(name)).otherwise(reason)
    return parsed.withColumn("reason", reason)


def mark_duplicates(ratings: DataFrame) -> DataFrame:
    """Add `reason`: null for the latest rating of each (user, item), `DUPLICATE` for the others.

    The order is total up to rows that are equal in every value: any partitioning keeps the same.
    """
    latest_first = Window.partitionBy("user", "item").orderBy(
        F.col("timestamp").desc_nulls_last(), F.col("rating").desc()
    )
    repeated = F.row_number().over(latest_first) > 1
    return ratings.withColumn("reason", F.when(repeated, F.lit(DUPLICATE)))


def _outside(rating: Column, settings: InputConfig) -> Column:
    outside = F.abs(rating) > MAX_RATING
    if settings.rating_min is not None:
        outside = outside | (rating < settings.rating_min)
    if settings.rating_max is not None:
        outside = outside | (rating > settings.rating_max)
    return outside
