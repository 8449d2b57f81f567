"""Facts of the stage that makes item features, and of its files."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from spark_rank.records.facts import Facts


@dataclass(frozen=True)
class MappedFile:
    """A file's name, which contains the beginning of its checksum, and the whole checksum."""

    name: str
    sha256: str


@dataclass(frozen=True)
class PoolFiles:
    """The files of a `ReviewerPool`, one per array, with its size and seed."""

    ends: MappedFile
    items: MappedFile
    ratings: MappedFile
    missing: MappedFile
    users: MappedFile
    keys: MappedFile
    size: int
    seed: int

    def arrays(self) -> dict[str, MappedFile]:
        """Return the files by the names of the arrays."""
        return {name: getattr(self, name) for name in POOL_ARRAYS}


POOL_ARRAYS = tuple(field.name for field in fields(PoolFiles) if field.name not in ("size", "seed"))


@dataclass(frozen=True)
class ChoiceFiles:
    """The files of the model of choices: see `spark_rank.features.choice.Choice`."""

    decoder: MappedFile
    encoder: MappedFile


@dataclass(frozen=True)
class FeatureFiles:
    """The files of one run's features; older records have no `choice`."""

    matrix: MappedFile
    offset: MappedFile
    prior: MappedFile
    item_ids: MappedFile
    pool: PoolFiles | None = None
    choice: ChoiceFiles | None = None

    def all(self) -> tuple[MappedFile, ...]:
        """Return every file."""
        of_pool = self.pool.arrays().values() if self.pool is not None else ()
        of_choice = () if self.choice is None else (self.choice.decoder, self.choice.encoder)
        return self.matrix, self.offset, self.prior, self.item_ids, *of_pool, *of_choice


@dataclass(frozen=True, kw_only=True)
class FeatureFacts(Facts):
    """The files that workers map, and a bound on ‖x‖² over items and users.

    `origin` is the fingerprint of an earlier run's features, if this run keeps them.
    """

    stage: ClassVar[str] = "features"

    files: FeatureFiles
    squared_radius: float
    origin: str | None = None


@dataclass(frozen=True)
class ShownFacts:
    """Propensities of ratings, and a curve from scores to ratings of items shown at random.

    The logarithm of a propensity rises by `liking` for a unit of the rating, which counts from
    `middle`; a propensity is proportional to the user's number of ratings. The curve is
    ``square · s² + linear · s + constant`` between `low` and `high`, and straight beyond. It comes
    from so many held-back `ratings`, which weighted are worth `effective` ones.
    """

    liking: float
    middle: float
    curve: tuple[float, float, float]
    low: float
    high: float
    ratings: int
    effective: float


@dataclass(frozen=True, kw_only=True)
class FactorFacts(FeatureFacts):
    """What factors were learned from; for kept factors, how many items are `without` any.

    `content` names the columns of the items' content that the factors start from. `shown` is there
    if `features.propensities` are fitted.
    """

    users: int
    ratings: int
    noise: float
    spread: float
    without: int | None = None
    content: tuple[str, ...] = ()
    shown: ShownFacts | None = None


@dataclass(frozen=True, kw_only=True)
class GivenFacts(FeatureFacts):
    """The length of the given vectors, and how many items have none."""

    width: int
    items_without: int


@dataclass(frozen=True, kw_only=True)
class ReviewerFacts(FeatureFacts):
    """How many users reviewers may be drawn from, and how many reviewers were collected."""

    group: int
    reviewers: int


_OF_KIND: dict[str, type[FeatureFacts]] = {
    "factors": FactorFacts,
    "als": FactorFacts,
    "given": GivenFacts,
    "reference": ReviewerFacts,
}


def feature_facts(kind: str) -> type[FeatureFacts]:
    """Return the class of the facts for a value of the setting `features.kind`."""
    return _OF_KIND.get(kind, FeatureFacts)
