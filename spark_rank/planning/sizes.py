"""The sizes of a data set: users, items, ratings, and how unevenly users rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from statistics import NormalDist
from typing import Any

from spark_rank.config.schema import PrepareConfig, SynthesizeConfig
from spark_rank.errors import ConfigError
from spark_rank.records.data import PrepareFacts
from spark_rank.records.facts import read_facts
from spark_rank.wording import count_of

# without better knowledge, users rate as in Netflix's data: median 118 ratings, mean 209
USUAL_RATINGS, USUAL_SPREAD, USUAL_ITEMS = 209, 1.07, 17_770
# bytes of input per rating, by format; other formats are text with two ids, a rating and a time
_BYTES = {"netflix": 20.6, "parquet": 6.0, "jester": 5.0, "letor": 400.0}
_TEXT_BYTES, _PACKING = 25.0, 4.0
_NORMAL = NormalDist()
_PLACES = [_NORMAL.inv_cdf((place + 0.5) / 20) for place in range(20)]


@dataclass(frozen=True)
class Sizes:
    """Counts of a data set and their source; `heaviest` is the most ratings of one user."""

    users: int
    items: int
    ratings: int
    heaviest: int
    source: str

    def __post_init__(self) -> None:
        if not self.users <= self.ratings <= self.users * self.items:
            raise ConfigError(
                f"plan: {self.users:,} users can have {self.users:,} to "
                f"{self.users * self.items:,} ratings of {self.items:,} items, not {self.ratings:,}"
            )

    @property
    def mean(self) -> float:
        """Return the mean number of ratings of a user."""
        return self.ratings / self.users

    def of_users(self) -> list[float]:
        """Return the ratings of twenty typical users: log-normal, none above the heaviest."""
        sizes = [min(exp(USUAL_SPREAD * z), self.heaviest / self.mean) for z in _PLACES]
        return [max(1.0, self.ratings / self.users * size / (sum(sizes) / 20)) for size in sizes]

    def in_words(self) -> str:
        """Return the counts as text for people."""
        return (
            f"{count_of(self.ratings, 'rating')} of {count_of(self.users, 'user')} for "
            f"{count_of(self.items, 'item')}, the heaviest user has {self.heaviest:,}"
        )


def spread(users: int, items: int, ratings: int, source: str) -> Sizes:
    """Return sizes with the usual heaviest user of so many; nobody rates an item twice."""
    rare = _NORMAL.inv_cdf(1.0 - 0.5 / max(users, 2))
    heaviest = ratings / max(users, 1) * exp(USUAL_SPREAD * (rare - USUAL_SPREAD / 2.0))
    return Sizes(users, items, ratings, min(items, max(1, round(heaviest))), source)


def synthetic(settings: SynthesizeConfig) -> Sizes:
    """Return the sizes of the generated data set, before it is generated."""
    median, deviation = settings.median_ratings, settings.activity_spread
    sizes = [min(max(1.0, median * exp(deviation * z)), settings.items) for z in _PLACES]
    ratings = max(1, round(settings.users * sum(sizes) / len(sizes)))
    return spread(settings.users, settings.items, ratings, "expected from synthesize")


def of_input(size: int, files: Sequence[str], format_name: str) -> Sizes:
    """Return the usual sizes for so many bytes of a format; users and items are a guess."""
    packed = any(name.endswith((".gz", ".bz2", ".zst")) for name in files)
    each = _BYTES.get(format_name, _TEXT_BYTES) / (_PACKING if packed else 1.0)
    ratings = max(1, round(size / each))
    users = max(1, round(ratings / USUAL_RATINGS))
    source = (
        f"guessed from {size / 1e6:,.0f} MB of input: {each:g} bytes per rating, "
        f"{USUAL_RATINGS} ratings per user; give --users and --items if you know them"
    )
    return spread(users, USUAL_ITEMS, min(ratings, users * USUAL_ITEMS), source)


def from_options(
    base: Sizes | None, ratings: int | None, users: int | None, items: int | None
) -> Sizes:
    """Return the sizes from the command line; the others, and ratings per user, from `base`."""
    if base is None and ratings is None and users is None:
        raise ConfigError("plan: the sizes of the data are not known: give --ratings or --users")
    mean = USUAL_RATINGS if base is None else base.mean
    named = {"--ratings": ratings, "--users": users, "--items": items}
    options = ", ".join(name for name, value in named.items() if value is not None)
    others = "as in Netflix's data" if base is None else base.source
    if users is None:
        users = base.users if base and ratings is None else max(1, round((ratings or 0) / mean))
    items = items or (USUAL_ITEMS if base is None else base.items)
    if ratings is None:
        ratings = max(1, min(round(users * mean), users * items))
    return spread(users, items, ratings, f"given by {options}; the others {others}")


def training_share(settings: PrepareConfig, sizes: Sizes) -> float:
    """Return the share of the ratings to learn from."""
    if settings.split in ("random", "temporal"):
        return settings.train_share
    if settings.split == "k_fold":
        return (settings.folds - 1) / settings.folds
    return max(1.0, sizes.mean - settings.leave_last) / max(1.0, sizes.mean)


def of_records(records: Mapping[str, Mapping[str, Any]], run_id: str) -> Sizes | None:
    """Return the counts by the stages of a run; None before `ingest` is done."""
    if "prepare" in records:
        facts = read_facts(PrepareFacts, records["prepare"], run_id)
        counts = facts.profile.users, facts.profile.items, facts.profile.ratings
        return Sizes(*counts, facts.most_ratings_of_a_user, f"counted by prepare in run {run_id}")
    tables = records["ingest"]["tables"] if "ingest" in records else {}
    if not tables.get("ratings"):
        return None
    counts = tables["users"], tables["items"], tables["ratings"]
    return spread(*counts, f"counted by ingest in run {run_id}")
