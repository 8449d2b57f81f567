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
    """A sample's errors at every point of a grid, None where they are infinite."""

    errors: tuple[float | None, ...]
    own_errors: tuple[float | None, ...]
    ratings: float


@dataclass(frozen=True, kw_only=True)
class TuneFacts(Facts):
    """By learner the chosen point and what users start from; choices at the edge of a grid."""

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
    """Which files have the users of which buckets."""

    buckets: tuple[int, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class JobFacts:
    """What decides a model besides features and ratings; it is compared as a whole."""

    specs: tuple[Mapping[str, Any], ...]
    panel: tuple[tuple[int, int], ...]
    min_ratings: int
    margin: float
    limits: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class PreviousRun:
    """A run whose models were kept where nothing had changed."""

    run: str


@dataclass(frozen=True, kw_only=True)
class PreviousModels(PreviousRun):
    """What has changed since: counts by what and how, rows of `changes`, why nothing was kept."""

    changes: Mapping[str, int]
    listed: int
    all_learned_because: str | None
    same_buckets: bool


@dataclass(frozen=True, kw_only=True)
class LearnedSince(Facts):
    """All that the list of runs asks of a training, so that other versions' runs are listed."""

    stage: ClassVar[str] = "train"

    previous: PreviousRun | None = None


@dataclass(frozen=True, kw_only=True)
class FailureFacts(Facts):
    """Users by learner and status of a stage that learns; of other stages it has no examples."""

    status: Status = field(default_factory=dict)
    failed_users: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class TrainFacts(Facts):
    """What became of the users, where their models are, and what decided them."""

    stage: ClassVar[str] = "train"

    status: Status
    failed_users: Mapping[str, Mapping[str, FailedUser]]
    waves: tuple[WaveFacts, ...]
    job: JobFacts
    previous: PreviousModels | None = None


@dataclass(frozen=True, kw_only=True)
class RefitFacts(TrainFacts):
    """The same of the models from all ratings of one learner, and their features."""

    stage: ClassVar[str] = "refit"

    learner: str
    features: FeatureFacts


@dataclass(frozen=True, kw_only=True)
class SkippedRefit(Facts):
    """Why there was nothing to learn again."""

    stage: ClassVar[str] = "refit"

    learner: str
    skipped: str


@dataclass(frozen=True, kw_only=True)
class UserEnsembleFacts(Facts):
    """What became of the users of every ensemble."""

    stage: ClassVar[str] = "ensemble"

    status: Status


@dataclass(frozen=True, kw_only=True)
class SequenceEnsembleFacts(Facts):
    """Which rivals failed on the sequence, and how many ranks it has."""

    stage: ClassVar[str] = "ensemble"

    failures: Mapping[str, str]
    n_ranks: int
