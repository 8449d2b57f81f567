"""Facts of the stages that learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from spark_rank.records.facts import Facts
from spark_rank.records.features import FeatureFacts

# users by learner and status
Status = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class PriorFacts:
    """A sample's errors at every grid point, None where they are infinite."""

    errors: tuple[float | None, ...]
    own_errors: tuple[float | None, ...]
    ratings: float


@dataclass(frozen=True, kw_only=True)
class TuneFacts(Facts):
    """The chosen grid point and the prior by learner; and the choices at the edge of a grid."""

    stage: ClassVar[str] = "tune"

    chosen: Mapping[str, Mapping[str, Any]]
    priors: Mapping[str, PriorFacts | None]
    edges: tuple[str, ...]
    failures: int


@dataclass(frozen=True)
class FailedUser:
    """One user without a model, as an example, and what went wrong."""

    user_id: str
    detail: str


@dataclass(frozen=True)
class WaveFacts:
    """The buckets of a wave, and the files with their users."""

    buckets: tuple[int, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class JobFacts:
    """All that determines a model besides features and ratings; compared as a whole.

    `levels` are those of users without training ratings, if there are any.
    """

    specs: tuple[Mapping[str, Any], ...]
    panel: tuple[tuple[int, int], ...]
    min_ratings: int
    margin: float
    limits: Mapping[str, Any]
    propensities: Mapping[str, Any] | None = None
    levels: Mapping[str, float] | None = None


@dataclass(frozen=True, kw_only=True)
class PreviousRun:
    """An earlier run whose models were kept for users without changes."""

    run: str


@dataclass(frozen=True, kw_only=True)
class PreviousModels(PreviousRun):
    """Changes since the earlier run: counts, rows of `changes`, and why no model was kept."""

    changes: Mapping[str, int]
    listed: int
    all_learned_because: str | None
    same_buckets: bool


@dataclass(frozen=True, kw_only=True)
class LearnedSince(Facts):
    """The one fact of a training that the list of runs reads.

    It has no other fields, so that the list also shows runs of other versions.
    """

    stage: ClassVar[str] = "train"

    previous: PreviousRun | None = None


@dataclass(frozen=True, kw_only=True)
class FailureFacts(Facts):
    """Users by learner and status; only stages that learn have examples in `failed_users`."""

    status: Status = field(default_factory=dict)
    failed_users: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class TrainFacts(Facts):
    """The users by status, the files of their models, and what determined the models."""

    stage: ClassVar[str] = "train"

    status: Status
    failed_users: Mapping[str, Mapping[str, FailedUser]]
    waves: tuple[WaveFacts, ...]
    job: JobFacts
    previous: PreviousModels | None = None


@dataclass(frozen=True, kw_only=True)
class RefitFacts(TrainFacts):
    """The facts of the final models, from all ratings, of one learner; and of their features."""

    stage: ClassVar[str] = "refit"

    learner: str
    features: FeatureFacts


@dataclass(frozen=True, kw_only=True)
class SkippedRefit(Facts):
    """Why `refit` had nothing to learn."""

    stage: ClassVar[str] = "refit"

    learner: str
    skipped: str


@dataclass(frozen=True, kw_only=True)
class UserEnsembleFacts(Facts):
    """The users by status, for every ensemble."""

    stage: ClassVar[str] = "ensemble"

    status: Status


@dataclass(frozen=True, kw_only=True)
class SequenceEnsembleFacts(Facts):
    """The rivals that failed on the sequence, and its number of ranks."""

    stage: ClassVar[str] = "ensemble"

    failures: Mapping[str, str]
    n_ranks: int
