"""The profile, against counting in Python."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

import numpy as np
import pytest
from pyspark.sql import SparkSession

from spark_rank.data.profile import (
    COUNT_BINS,
    RATING_BINS,
    count_bins,
    histogram,
    log_binned,
    rating_keys,
    rating_times,
)
from spark_rank.records.data import RatingBin, RatingScale

DAY = 86_400


def counts_of(ratings: list[float], scale: RatingScale) -> tuple[RatingBin, ...]:
    return histogram(Counter(rating_keys(np.array(ratings), scale).tolist()), scale)


def test_times_are_days(spark: SparkSession) -> None:
    rows = [(4.0, 10 * DAY), (4.0, None), (1.0, 3 * DAY - 1), (5.0, 4 * DAY)]
    frame = spark.createDataFrame(rows, "rating float, timestamp bigint")
    found = rating_times(frame)
    assert (found.first_time, found.last_time) == ("1970-01-03", "1970-01-11")
    assert (found.ratings, found.without_time) == (4, 1)


def test_no_time_is_none(spark: SparkSession) -> None:
    found = rating_times(spark.createDataFrame([(4.0, None)], "rating float, timestamp bigint"))
    assert (found.first_time, found.last_time, found.without_time) == (None, None, 1)


def test_levels_are_counted() -> None:
    found = counts_of([4.0, 4.0, 1.0, 5.0], RatingScale("levels", 1.0, 5.0, 5))
    levels = [(level.rating, level.ratings) for level in found]
    assert levels == [(1.0, 1), (4.0, 2), (5.0, 1)]


def test_a_continuous_scale_is_cut_into_equal_bins() -> None:
    values = [-10.0, -9.99, 0.0, 3.17, 9.99, 10.0, 10.0]
    bins = counts_of(values, RatingScale("continuous", -10.0, 10.0, 0))
    assert len(bins) == RATING_BINS
    # every bin holds what lies in it; the greatest rating belongs to the last
    for place, entry in enumerate(bins):
        last = place == RATING_BINS - 1
        assert entry.low is not None
        assert entry.high is not None
        inside = [v for v in values if entry.low <= v < entry.high or (last and v == 10.0)]
        assert entry.ratings == len(inside)
    single = counts_of([0.0], RatingScale("cut", 0.0, 0.0, 1))
    assert [entry.ratings for entry in single] == [1]


@pytest.mark.parametrize("sizes", [[1], [1, 1, 2, 3, 5, 6, 9, 10, 99, 100, 101, 20_000], [7] * 5])
def test_log_bins_hold_every_user_and_item(sizes: list[int]) -> None:
    expected = Counter(COUNT_BINS[bisect_right(COUNT_BINS, n) - 1] for n in sizes)
    bins = log_binned(Counter(count_bins(np.array(sizes)).tolist()))
    assert {start: count for start, count in bins if count} == expected
    starts = [start for start, _ in bins]
    first = COUNT_BINS.index(starts[0])
    assert tuple(starts) == COUNT_BINS[first : first + len(starts)]  # none left out
    assert log_binned({}) == ()
