"""Facts of the stages that use models, and of the experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from spark_rank.records.facts import Facts
from spark_rank.records.models import Status


@dataclass(frozen=True, kw_only=True)
class TunedScore:
    """The error of a chosen grid point in tuning, and on the same users' held-out ratings."""

    measure: str
    tuning: float
    tuning_standard_error: float | None
    held_out: float | None
    held_out_standard_error: float | None


@dataclass(frozen=True, kw_only=True)
class EvaluateFacts(Facts):
    """Means over users by learner and metric, with the number of users and their status.

    `pooled` has the metrics over all held-out ratings, and `test` says what these are: of items
    that the users chose, or of random ones. Older records have no `users`, `pooled` and `test`.
    """

    stage: ClassVar[str] = "evaluate"

    means: Mapping[str, Mapping[str, float | None]]
    users: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    pooled: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    status: Status
    relevant_from: float
    tuned: Mapping[str, TunedScore] = field(default_factory=dict)
    test: str = "chosen"


@dataclass(frozen=True, kw_only=True)
class RankFacts(Facts):
    """The learners whose preferences were ranked, the calls of the preference, and the items."""

    stage: ClassVar[str] = "rank"

    learners: tuple[str, ...]
    calls: int
    items: int


@dataclass(frozen=True, kw_only=True)
class AggregateFacts(Facts):
    """How many pairwise opinions the order contradicts, and bounds on the least possible number."""

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
    """The learner, the number of users with lists, and list places by source of the score."""

    stage: ClassVar[str] = "recommend"

    learner: str
    candidates: int
    all_ratings: bool = False
    users: int
    places: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class PageFacts(Facts):
    """The path of a page within the run."""

    file: str


@dataclass(frozen=True, kw_only=True)
class RatingSetProfile:
    """A profile of an experiment's data set; levels only if there are few."""

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
    """How long a task took, once, on one machine: shown in the report, stored in no table.

    Attributes
    ----------
    task, method : the task, and the method that did it.
    x : the size of the task.
    seconds : seconds of one thread.
    """

    task: str
    method: str
    x: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ExperimentFacts(Facts):
    """The units of work, the data, what the pilot chose, and the time by step."""

    stage: ClassVar[str] = "experiment"

    units: int
    data: Mapping[str, str]
    missing: tuple[str, ...]
    skipped: bool = False
    profiles: tuple[RatingSetProfile, ...] = ()
    chosen: Mapping[str, Any] = field(default_factory=dict)
    timings: tuple[Timing, ...] = ()
    seconds_by_step: Mapping[str, float] = field(default_factory=dict)
