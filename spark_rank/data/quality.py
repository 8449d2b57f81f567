"""Decides which parsed rows are valid ratings, with the reason for each other row."""

from __future__ import annotations

import math

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.config import InputConfig
from spark_rank.data.formats import FORMATS
from spark_rank.data.formats.columns import PART

NOT_UTF8 = "not_utf8"
MALFORMED = "malformed_row"
MISSING_USER = "missing_user"
MISSING_ITEM = "missing_item"
UNREADABLE_RATING = "unreadable_rating"
NOT_FINITE = "rating_not_finite"
OUT_OF_RANGE = "rating_out_of_range"
UNKNOWN_LEVEL = "unknown_rating_level"
UNREADABLE_TIMESTAMP = "unreadable_timestamp"
IMPOSSIBLE_TIMESTAMP = "impossible_timestamp"
UNKNOWN_PART = "unknown_part"
DUPLICATE = "duplicate"
# by the rules of the format not a rating: dropped and counted, but not wrong
IMPLICIT = "implicit"

# larger than any rating scale; above it sums of ratings as integers could overflow
MAX_RATING = 1.0e6
# from 1900 to 9999: other values are not seconds, most likely milliseconds
_FIRST_SECOND, _LAST_SECOND = -2_208_988_800, 253_402_300_799


def with_reason(parsed: DataFrame, settings: InputConfig) -> DataFrame:
    """Add `reason`: null for a valid row, else the first rule that the row breaks.

    `IMPLICIT` is the reason of a correct row that holds no rating.
    """
    rating, time = F.col("rating"), F.col("timestamp")
    levels, low, high = allowed_ratings(settings)
    rules: list[tuple[str, Column]] = [
        (NOT_UTF8, ~F.col("text_ok")),
        (MALFORMED, ~F.col("fields_ok")),
        (MISSING_USER, F.col("user_id").isNull()),
        (MISSING_ITEM, F.col("item_id").isNull()),
        (UNREADABLE_RATING, rating.isNull()),
        (NOT_FINITE, F.isnan(rating) | (F.abs(rating) == float("inf"))),
    ]
    implicit = FORMATS[settings.known_format].implicit
    if implicit is not None and not settings.keep_implicit:
        rules.append((IMPLICIT, rating == implicit))
    rules.append(
        (OUT_OF_RANGE, (rating < max(low, -MAX_RATING)) | (rating > min(high, MAX_RATING)))
    )
    if levels:
        rules.append((UNKNOWN_LEVEL, ~rating.isin(*levels)))
    rules.append((UNREADABLE_TIMESTAMP, ~F.col("timestamp_ok")))
    rules.append((IMPOSSIBLE_TIMESTAMP, ~time.between(_FIRST_SECOND, _LAST_SECOND)))
    if PART in parsed.columns:
        rules.append((UNKNOWN_PART, F.col(PART).isNull()))
    reason = F.lit(None).cast("string")
    for name, broken in reversed(rules):
        reason = F.when(broken, F.lit(name)).otherwise(reason)
    return parsed.withColumn("reason", reason)


def allowed_ratings(settings: InputConfig) -> tuple[tuple[float, ...], float, float]:
    """Return the allowed levels (empty: any), the least and the greatest rating.

    Configured values replace those of the format.
    """
    file_format = FORMATS[settings.known_format]
    low, high = settings.rating_min, settings.rating_max
    levels = tuple(settings.levels)
    if not levels and low is None and high is None:
        levels, low, high = file_format.levels, file_format.low, file_format.high
        if levels and settings.keep_implicit and file_format.implicit is not None:
            levels = (file_format.implicit, *levels)
    if levels:
        low = min(levels) if low is None else low
        high = max(levels) if high is None else high
    return levels, -math.inf if low is None else low, math.inf if high is None else high
