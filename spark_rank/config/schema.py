"""Every configuration key: its type, default, range and meaning, in one place."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

FormatName = Literal["movielens-100k", "movielens-dat", "csv", "parquet"]


def setting(default: Any, doc: str, **limits: Any) -> Any:
    """Declare a key: its default, its meaning, and limits (`above`, `at_least`, `at_most`)."""
    metadata = {"doc": doc, **limits}
    if isinstance(default, (dict, list)):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class InputConfig:
    """Where the ratings come from."""

    path: str | None = setting(None, "file, directory or glob; null: the generated data set")
    format: FormatName = setting("parquet", "how the ratings are written")
    delimiter: str = setting(",", "csv: the field separator")
    header: bool = setting(True, "csv: the first line of every file names the columns")
    columns: dict[str, str | None] = setting(
        {},
        "csv and parquet: the columns that hold user, item, rating and timestamp (names, or "
        "positions from 0 where csv has no header; a null timestamp is left out)",
    )
    rating_min: float | None = setting(None, "a rating below this is quarantined")
    rating_max: float | None = setting(None, "a rating above this is quarantined")
    max_bad_share: float = setting(
        0.05,
        "ingest fails above this share of unusable rows (duplicates do not count)",
        at_least=0.0,
        at_most=1.0,
    )

    @property
    def separator(self) -> str:
        """Return the field separator as a character; a tab may be written as backslash and t."""
        return "\t" if self.delimiter == "\\t" else self.delimiter


@dataclass(frozen=True)
class SynthesizeConfig:
    """The generated, Netflix-shaped data set."""

    users: int = setting(3000, "number of users", at_least=2, at_most=2_000_000_000)
    items: int = setting(1500, "number of items", at_least=2, at_most=10_000_000)
    median_ratings: float = setting(
        60.0, "median number of ratings of a user", above=0.0, at_most=1e6
    )
    activity_spread: float = setting(
        1.2,
        "standard deviation of the logarithm of a user's number of ratings",
        at_least=0.0,
        at_most=10.0,
    )
    levels: int = setting(5, "rating levels 1..levels", at_least=2, at_most=100)
    format: FormatName = setting("parquet", "format to write")
    path: str | None = setting(None, "directory to write; null: inside the run")


@dataclass(frozen=True)
class PrepareConfig:
    """User blocks and the split inside them."""

    train_share: float = setting(
        0.5, "share of every user's ratings to learn from", above=0.0, at_most=1.0
    )
    buckets: int = setting(
        16, "number of hash buckets of the user blocks", at_least=1, at_most=100_000
    )


@dataclass(frozen=True)
class FeaturesConfig:
    """What an item looks like to a learner."""

    panel_size: int = setting(
        100, "number of reference reviewers: the most active users", at_least=1, at_most=10_000
    )
    offset_shrinkage: float = setting(
        10.0, "ratings' worth of evidence that pulls an item's offset to 0", at_least=0.0
    )


@dataclass(frozen=True)
class LearnerConfig:
    """One learner to train: which, under what name, with which hyper-parameters."""

    learner: str = setting("mprank", "name in the registry of learners")
    name: str | None = setting(None, "value of the `learner` column; null: the learner's name")
    item_offset: bool = setting(True, "learn what the item offset leaves over")
    params: dict[str, Any] = setting({}, "hyper-parameters of the learner")

    @property
    def label(self) -> str:
        """Return the value of the `learner` column."""
        return self.name or self.learner


@dataclass(frozen=True)
class TrainConfig:
    """What is learned for every user."""

    learners: list[LearnerConfig] = setting(
        [LearnerConfig()], "the learners, trained in one pass beside the two baselines"
    )
    min_ratings: int = setting(
        3, "users with fewer training ratings fall back to the item offset", at_least=2
    )
    max_failed_share: float = setting(
        0.01, "training fails above this share of failed users", at_least=0.0, at_most=1.0
    )


@dataclass(frozen=True)
class Config:
    """The whole configuration."""

    store: str = setting("store", "directory of all runs, on any Hadoop file system")
    run_id: str = setting("default", "name of the run: letters, digits, '.', '_', '-'")
    seed: int = setting(0, "seed of every split and draw", at_least=0, at_most=2**62)
    input: InputConfig = setting(InputConfig(), "where the ratings come from")
    synthesize: SynthesizeConfig = setting(SynthesizeConfig(), "the generated data set")
    prepare: PrepareConfig = setting(PrepareConfig(), "user blocks and split")
    features: FeaturesConfig = setting(FeaturesConfig(), "item features")
    train: TrainConfig = setting(TrainConfig(), "learners")
    spark: dict[str, str] = setting({}, "Spark settings by their full names")


def describe(kind: type, sections: Sequence[str], prefix: str = "") -> list[tuple[str, str, str]]:
    """Return key, meaning and default of every key in the named sections; "" is the top level."""
    return list(_describe(kind, sections, prefix))


def _describe(kind: type, sections: Sequence[str], prefix: str) -> Iterator[tuple[str, str, str]]:
    for entry in dataclasses.fields(kind):
        default = entry.default
        if default is dataclasses.MISSING and entry.default_factory is not dataclasses.MISSING:
            default = entry.default_factory()
        if dataclasses.is_dataclass(default):
            if entry.name in sections:
                yield from _describe(type(default), ("",), f"{entry.name}.")
        elif "" in sections:
            yield f"{prefix}{entry.name}", entry.metadata["doc"], _shown(default)


def _shown(default: Any) -> str:
    if isinstance(default, list):
        return ", ".join(entry.label for entry in default)
    return "null" if default is None else str(default) or '""'
