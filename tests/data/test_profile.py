"""The profile against counting in Python."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.data.filters import Activity
from spark_rank.data.profile import COUNT_BINS, RATING_BINS, data_profile
from spark_rank.records.data import DataProfile, RatingScale

DAY = 86_400
LEVELS = RatingScale("levels", 1.0, 5.0, 5)


def profile(ratings: DataFrame, scale: RatingScale) -> DataProfile:
    """Return the profile of ratings whose users and items nobody counted."""
    nobody = ratings.sparkSession.createDataFrame([], "user int, item int, n bigint")
    return data_profile(ratings, Activity(nobody, nobody, 0, 0, 0), scale)


def test_levels_are_counted_and_times_are_days(spark: SparkSession) -> None:
    rows = [(4.0, 10 * DAY), (4.0, None), (1.0, 3 * DAY - 1), (5.0, 4 * DAY)]
    frame = spark.createDataFrame(rows, "rating float, timestamp bigint")
    found = profile(frame, LEVELS)
    histogram = [(level.rating, level.ratings) for level in found.histogram]
    assert histogram == [(1.0, 1), (4.0, 2), (5.0, 1)]
    assert (found.first_time, found.last_time) == ("1970-01-03", "1970-01-11")
    assert found.without_time == 1


def test_no_time_is_none(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(4.0, None)], "rating float, timestamp bigint")
    found = profile(frame, LEVELS)
    assert (found.first_time, found.last_time, found.without_time) == (None, None, 1)


def test_a_continuous_scale_is_cut_into_equal_bins(spark: SparkSession) -> None:
    values = [-10.0, -9.99, 0.0, 3.17, 9.99, 10.0, 10.0]
    frame = spark.createDataFrame([(v, None) for v in values], "rating double, timestamp bigint")
    bins = profile(frame, RatingScale("continuous", -10.0, 10.0, 0)).histogram
    assert len(bins) == RATING_BINS
    # every bin holds what lies in it; the greatest rating belongs to the last
    for place, entry in enumerate(bins):
        last = place == RATING_BINS - 1
        assert entry.low is not None
        assert entry.high is not None
        inside = [v for v in values if entry.low <= v < entry.high or (last and v == 10.0)]
        assert entry.ratings == len(inside)
    single = profile(frame.where("rating = 0"), RatingScale("cut", 0.0, 0.0, 1))
    assert [entry.ratings for entry in single.histogram] == [1]


@pytest.mark.parametrize("sizes", [[1], [1, 1, 2, 3, 5, 6, 9, 10, 99, 100, 101, 20_000], [7] * 5])
def test_log_bins_hold_every_user_and_item(spark: SparkSession, sizes: list[int]) -> None:
    by_user = spark.createDataFrame(list(enumerate(sizes)), "user int, n bigint")
    by_item = by_user.select(F.col("user").alias("item"), (F.col("n") * 10).alias("n"))
    activity = Activity(by_user, by_item, len(sizes), len(sizes), sum(sizes))
    nothing = spark.createDataFrame([], "rating float, timestamp bigint")
    found = data_profile(nothing, activity, LEVELS)
    for bins, factor in ((found.user_activity, 1), (found.item_popularity, 10)):
        expected = Counter(COUNT_BINS[bisect_right(COUNT_BINS, factor * n) - 1] for n in sizes)
        assert {start: count for start, count in bins if count} == expected
        starts = [start for start, _ in bins]
        first = COUNT_BINS.index(starts[0])
        assert tuple(starts) == COUNT_BINS[first : first + len(starts)]  # none left out
    assert found.density == sum(sizes) / len(sizes) ** 2
