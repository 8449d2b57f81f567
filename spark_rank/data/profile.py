"""Profiles the ratings: counts them by level, user, item and time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.records.data import Bins, RatingBin, RatingScale

# number of bins of equal width for a scale without levels
RATING_BINS = 40
# four bins per factor of ten, which start at whole numbers: 1, 2, 3, 6, 10, 18, 32, 56, 100 …
COUNT_BINS = tuple(dict.fromkeys(round(10 ** (i / 4)) for i in range(40)))


class RatingTimes(NamedTuple):
    """The number of ratings, the number without a time, and the first and last day."""

    ratings: int
    without_time: int
    first_time: str | None
    last_time: str | None


def rating_times(ratings: DataFrame) -> RatingTimes:
    """Return the counts and the range of times, in one pass."""
    time = "timestamp"
    summary = ratings.agg(F.count("*"), F.count(time), F.min(time), F.max(time)).head()
    count, timed, first, last = summary or (0, 0, None, None)
    return RatingTimes(count, count - timed, _as_text(first), _as_text(last))


def rating_keys(ratings: NDArray[np.floating], scale: RatingScale) -> NDArray[np.float64]:
    """Return the key of every rating's bin: the rating if it is a level, else the bin's number."""
    values = ratings.astype(np.float64)
    if scale.kind == "levels":
        return values
    low, high = scale.low, scale.high
    if high <= low:
        return np.zeros(len(values))
    return np.minimum(np.floor((values - low) / (high - low) * RATING_BINS), RATING_BINS - 1)


def histogram(counts: Mapping[float, int], scale: RatingScale) -> tuple[RatingBin, ...]:
    """Return the ratings of every bin, from the counts by `rating_keys`.

    `scale` is the scale that `ingest` found. Each of its levels is a bin; without levels there are
    `RATING_BINS` bins of equal width.
    """
    if scale.kind == "levels":
        return tuple(RatingBin(rating=rating, ratings=counts[rating]) for rating in sorted(counts))
    low, high = scale.low, scale.high
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


def count_bins(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the start of the bin of each number of ratings, which is at least 1."""
    return np.array(COUNT_BINS)[np.searchsorted(COUNT_BINS, counts, side="right") - 1]


def log_binned(counts: Mapping[int, int]) -> Bins:
    """Return the start and count of all bins from the first to the last that is not empty.

    `counts` has the number of users or items by the start of their bin.
    """
    filled = [start for start in COUNT_BINS if counts.get(start)]
    if not filled:
        return ()
    within = (start for start in COUNT_BINS if filled[0] <= start <= filled[-1])
    return tuple((start, counts.get(start, 0)) for start in within)


def _as_text(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).date().isoformat()
