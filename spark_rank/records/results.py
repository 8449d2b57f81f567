"""Facts of the stages that make results of models, and of the experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from spark_rank.records.facts import Facts
from spark_rank.records.models import Status


@dataclass(frozen=True, kw_only=True)
class TunedScore:
    """A chosen point's error in tuning, and on the same users' held-out ratings."""

    measure: str
    tuning: float
    tuning_standard_error: float | None
    held_out: float | None
    held_out_standard_error: float | None


@dataclass(frozen=True, kw_only=True)
class EvaluateFacts(Facts):
    """Means over users by learner and metric, the numbers of users behind them, their status.

    Older records have no `users`.
    """

    stage: ClassVar[str] = "evaluate"

    means: Mapping[str, Mapping[str, float | None]]
    users: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    status: Status
    relevant_from: float
    tuned: Mapping[str, TunedScore] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RankFacts(Facts):
    """Who was asked, how many questions it took, and of how many items."""

    stage: ClassVar[str] = "rank"

    learners: tuple[str, ...]
    calls: int
    items: int


@dataclass(frozen=True, kw_only=True)
class AggregateFacts(Facts):
    """How many pairwise opinions the order contradicts, and how few any order could."""

    stage: ClassVar[str] = "aggregate"

    method: str
    score: float
    lower_bound: float
    proven_bound: float
    gap: float
    optimal: bool
    misranked: float | None
    mean_rating_score: float


@dataclass(frozen=True, kw_only=True)
class RecommendFacts(Facts):
    """Whose models made how many lists, and places by where their scores come from."""

    stage: ClassVar[str] = "recommend"

    learner: str
    candidates: int
    all_ratings: bool = False
    users: int
    places: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class PageFacts(Facts):
    """Where in the run a page is."""

    file: str


@dataclass(frozen=True, kw_only=True)
class RatingSetProfile:
    """A data set of an experiment in a few numbers; levels only where there are few."""

    name: str
    users: int
    items: int
    ratings: int
    implicit: int
    median_of_a_user: float
    most_of_a_user: int
    mean: float | None
    levels: tuple[float, ...] | None
    ends: tuple[float, float] | None


@dataclass(frozen=True)
class Timing:
    """How long something took, once, on one machine: for the report alone, in no table.

    Attributes
    ----------
    task, method : what was timed, and done by whom.
    x : the size of it.
    seconds : of one thread.
    """

    task: str
    method: str
    x: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ExperimentFacts(Facts):
    """How much work there was on which data, what a pilot chose, and where the time went."""

    stage: ClassVar[str] = "experiment"

    units: int
    data: Mapping[str, str]
    missing: tuple[str, ...]
    skipped: bool = False
    profiles: tuple[RatingSetProfile, ...] = ()
    chosen: Mapping[str, Any] = field(default_factory=dict)
    timings: tuple[Timing, ...] = ()
    seconds_by_step: Mapping[str, float] = field(default_factory=dict)
