"""Facts of the stages that make ratings and user blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from spark_rank.records.facts import Facts, under

# the smallest number of ratings of a bin, and how many users or items are in it
Bins = tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class SynthesizeFacts(Facts):
    """The path of the generated files; None if they are a table of the run."""

    stage: ClassVar[str] = "synthesize"

    path: str | None = None


@dataclass(frozen=True)
class RatingScale:
    """The scale of the ratings: its `kind` (levels, cut or continuous), ends and levels."""

    kind: str
    low: float
    high: float
    levels: int


@dataclass(frozen=True, kw_only=True)
class IngestFacts(Facts):
    """What became of the rows, how they were read, and the scale of the ratings.

    `buckets` is the number of buckets, of which each file of `ratings` has whole ones; None in
    records of older versions. `parts` counts the ratings of a given split by part.
    """

    stage: ClassVar[str] = "ingest"

    rows_in: int
    quarantined_by_reason: Mapping[str, int]
    dropped_by_reason: Mapping[str, int] = field(default_factory=dict)
    rating_scale: RatingScale
    read_as: str
    titles_unreadable: int | None = None
    buckets: int | None = None
    parts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FilterFacts:
    """What a filter kept and dropped, and in which round; `user_share` has round 0."""

    filter: str
    round: int
    ratings: int
    ratings_dropped: int
    users: int
    users_dropped: int
    items: int
    items_dropped: int


@dataclass(frozen=True, kw_only=True)
class RatingBin:
    """The number of ratings of a level, or of an interval if the scale has no levels."""

    ratings: int
    rating: float | None = None
    low: float | None = under("from")
    high: float | None = under("to")


@dataclass(frozen=True, kw_only=True)
class DataProfile:
    """A profile of the ratings after the filters; times are days."""

    ratings: int
    users: int
    items: int
    density: float | None
    user_activity: Bins
    item_popularity: Bins
    histogram: tuple[RatingBin, ...]
    without_time: int
    first_time: str | None
    last_time: str | None


@dataclass(frozen=True, kw_only=True)
class PrepareFacts(Facts):
    """The size of the blocks, the effect of the filters, and a profile of the ratings.

    Older records do not count users and items without training ratings.
    """

    stage: ClassVar[str] = "prepare"

    train_ratings: int
    test_ratings: int
    most_ratings_of_a_user: int
    users_with_nothing_held_out: int
    users_without_training: int = 0
    items_without_training: int = 0
    filters: tuple[FilterFacts, ...]
    filters_settled: bool
    profile: DataProfile
