"""How much data there is: users, items, ratings, and how unevenly they are spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, sqrt
from statistics import NormalDist
from typing import Any

from spark_rank.config.schema import PrepareConfig, SynthesizeConfig
from spark_rank.errors import ConfigError
from spark_rank.wording import count_of

# where nothing is known, ratings are spread as in Netflix's data: median 118 of a user, mean 209
USUAL_RATINGS, USUAL_SPREAD, USUAL_ITEMS = 209, 1.07, 17_770
# bytes of input to a rating, by format; the others are text with two ids, a rating and a time
_BYTES = {"netflix": 20.6, "parquet": 6.0, "jester": 5.0, "letor": 400.0}
_TEXT_BYTES = 25.0
_PACKING = 4.0
# users are reckoned with in so many groups of one size each
_GROUPS = 200
_HALVINGS = 50

Groups = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Sizes:
    """Counts of a data set; `groups` are numbers of users and the ratings of each of them."""

    users: int
    items: int
    ratings: int
    heaviest: int
    groups: Groups
    source: str

    @property
    def mean(self) -> float:
        """Return the mean number of ratings of a user."""
        return self.ratings / self.users

    def in_words(self) -> str:
        """Return the counts as people say them."""
        return (
            f"{count_of(self.ratings, 'rating')} of {count_of(self.users, 'user')} for "
            f"{count_of(self.items, 'item')}, the "
            f"heaviest user has {self.heaviest:,}"
        )


def counted(
    users: int,
    items: int,
    ratings: int,
    source: str,
    heaviest: int | None = None,
    activity: Sequence[Sequence[int]] = (),
) -> Sizes:
    """Return sizes as they were counted.

    `activity` are bins of users by their ratings, least number and users, as `prepare` has them.
    """
    if not activity:
        return spread(users, items, ratings, source)
    most = heaviest or max(start for start, _ in activity)
    ends = [start for start, _ in activity[1:]] + [most + 1]
    groups = [(float(count), min(sqrt(start * max(start, end - 1)), float(most)))
              for (start, count), end in zip(activity, ends, strict=True)]  # fmt: skip
    return Sizes(users, items, ratings, most, _adding_up(groups, ratings, most), source)


def spread(
    users: int, items: int, ratings: int, source: str, deviation: float = USUAL_SPREAD
) -> Sizes:
    """Return sizes with log-normal numbers of ratings; nobody rates an item twice."""
    _check_possible(users, items, ratings)
    median = ratings / users / exp(deviation**2 / 2.0)
    sizes = [min(max(1.0, median * exp(deviation * z)), float(items)) for z in _normal_places()]
    rare = NormalDist().inv_cdf(1.0 - 0.5 / max(users, 2))
    heaviest = min(items, max(1, round(median * exp(deviation * rare))))
    groups = [(users / _GROUPS, size) for size in sizes]
    return Sizes(users, items, ratings, heaviest, _adding_up(groups, ratings, items), source)


def synthetic(settings: SynthesizeConfig) -> Sizes:
    """Return the sizes of the generated data set, before it is generated."""
    median, deviation = settings.median_ratings, settings.activity_spread
    sizes = [min(max(1.0, median * exp(deviation * z)), settings.items) for z in _normal_places()]
    ratings = round(settings.users * sum(sizes) / _GROUPS)
    source = "expected of synthesize"
    return spread(settings.users, settings.items, max(1, ratings), source, deviation)


def of_input(size: int, files: Sequence[str], format_name: str) -> Sizes:
    """Return what is usual for so many bytes of a format; users and items are a guess."""
    packed = any(name.endswith((".gz", ".bz2", ".zst")) for name in files)
    each = _BYTES.get(format_name, _TEXT_BYTES) / (_PACKING if packed else 1.0)
    ratings = max(1, round(size / each))
    users = max(1, round(ratings / USUAL_RATINGS))
    source = (
        f"guessed from {size / 1e6:,.0f} MB of input: {each:g} bytes to a rating, "
        f"{USUAL_RATINGS} ratings to a user; --users and --items say better"
    )
    return spread(users, USUAL_ITEMS, min(ratings, users * USUAL_ITEMS), source)


def given(base: Sizes | None, ratings: int | None, users: int | None, items: int | None) -> Sizes:
    """Return sizes given by hand; what is not given is as in `base`, a user's ratings too."""
    if ratings is not None and users is not None and items is not None:
        return spread(users, items, ratings, "given by hand, spread as Netflix's are")
    if base is None:
        if ratings is None and users is None:
            raise ConfigError("plan: nothing is known of the data: give --ratings or --users")
        likely = (ratings or (users or 0) * USUAL_RATINGS) / USUAL_RATINGS
        usual = max(1, round(likely))
        base = spread(usual, USUAL_ITEMS, usual * USUAL_RATINGS, "as in Netflix's data")
    named = {"--ratings": ratings, "--users": users, "--items": items}
    words = ", ".join(name for name, value in named.items() if value is not None)
    of_items = items or base.items
    if users is None:
        users = base.users if ratings is None else max(1, round(ratings / base.mean))
    if ratings is None:
        ratings = max(1, min(round(users * base.mean), users * of_items))
    _check_possible(users, of_items, ratings)
    factor = ratings / users / base.mean
    most = min(of_items, max(1, round(base.heaviest * factor)))
    groups = [(count * users / base.users, size * factor) for count, size in base.groups]
    source = f"given by {words}; the rest {base.source}"
    return Sizes(users, of_items, ratings, most, _adding_up(groups, ratings, most), source)


def training_share(settings: PrepareConfig, sizes: Sizes) -> float:
    """Return the share of the ratings to learn from."""
    if settings.split in ("random", "temporal"):
        return settings.train_share
    if settings.split == "k_fold":
        return (settings.folds - 1) / settings.folds
    return max(1.0, sizes.mean - settings.leave_last) / max(1.0, sizes.mean)


def of_records(records: Mapping[str, Mapping[str, Any]], run_id: str) -> Sizes | None:
    """Return what the stages of a run have counted; None before `ingest` is done."""
    prepared = records.get("prepare")
    if prepared is not None and "profile" in prepared["facts"]:
        facts = prepared["facts"]
        profile = facts["profile"]
        return counted(
            profile["users"], profile["items"], profile["ratings"],
            f"counted by prepare in run {run_id}", facts.get("most_ratings_of_a_user"),
            profile["user_activity"],
        )  # fmt: skip
    ingested = records.get("ingest")
    if ingested is None or not ingested["tables"].get("ratings"):
        return None
    tables = ingested["tables"]
    source = f"counted by ingest in run {run_id}"
    return counted(tables["users"], tables["items"], tables["ratings"], source)


def _check_possible(users: int, items: int, ratings: int) -> None:
    if not users <= ratings <= users * items:
        raise ConfigError(
            f"plan: {users:,} users can have {users:,} to {users * items:,} ratings of {items:,} "
            f"items, not {ratings:,}"
        )


def _normal_places() -> list[float]:
    normal = NormalDist()
    return [normal.inv_cdf((place + 0.5) / _GROUPS) for place in range(_GROUPS)]


def _adding_up(groups: Sequence[tuple[float, float]], ratings: int, most: float) -> Groups:
    """Return groups whose ratings are all there are, every user having one to `most` of them."""
    held = [(count, size) for count, size in groups if count > 0]

    def scaled(logarithm: float) -> list[tuple[float, float]]:
        factor = exp(logarithm)
        return [(count, min(max(1.0, size * factor), float(most))) for count, size in held]

    low, high = -40.0, 40.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if sum(count * size for count, size in scaled(middle)) < ratings:
            low = middle
        else:
            high = middle
    return tuple(scaled(high))
