"""Filters ratings by activity: keeps users and items by their numbers of ratings.

The papers' subsets are ``{user_min: 20, user_max: 40}`` (a group of reviewers),
``{user_min: 150, item_min: 360}`` (Netflix: both thresholds on the same ratings) and
``{user_min: 200}, {item_min: 10}`` (Book-Crossing: one after the other).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.config import FilterConfig, PrepareConfig
from spark_rank.errors import InputDataError
from spark_rank.records.data import FilterFacts
from spark_rank.wording import count_of

# tables of up to so many rows are broadcast; larger ones are joined by sorting
BROADCAST_ROWS = 2_000_000
# writes a table under a name and returns the written table, from which later steps start
Keep = Callable[[DataFrame, str], DataFrame]


@dataclass(frozen=True)
class Activity:
    """The number of ratings of every user and item: tables ``user, n`` and ``item, n``."""

    by_user: DataFrame
    by_item: DataFrame
    users: int
    items: int
    ratings: int


@dataclass(frozen=True)
class FilterStep:
    """The activity before and after a filter; the round of `user_share` is 0."""

    label: str
    round: int
    before: Activity
    after: Activity

    def facts(self) -> FilterFacts:
        """Return the step as numbers: kept and dropped ratings, users and items."""
        before, after = self.before, self.after
        return FilterFacts(
            filter=self.label,
            round=self.round,
            ratings=after.ratings,
            ratings_dropped=before.ratings - after.ratings,
            users=after.users,
            users_dropped=before.users - after.users,
            items=after.items,
            items_dropped=before.items - after.items,
        )


def count_activity(ratings: DataFrame, keep: Keep, name: str) -> Activity:
    """Count the ratings of every user and every item; two passes over one column each."""
    by_user = keep(ratings.groupBy("user").agg(F.count("*").alias("n")), f"{name}_users")
    by_item = keep(ratings.groupBy("item").agg(F.count("*").alias("n")), f"{name}_items")
    users = by_user.agg(F.count("*"), F.coalesce(F.sum("n"), F.lit(0))).head() or (0, 0)
    return Activity(by_user, by_item, users[0], by_item.count(), users[1])


def filter_ratings(
    ratings: DataFrame, users: DataFrame, settings: PrepareConfig, seed: int, keep: Keep
) -> tuple[DataFrame, list[FilterStep]]:
    """Return the ratings that stay, and the steps; without filters nothing is counted.

    The filters are applied one after the other, for `filter_rounds` rounds or until a whole round
    drops nothing. The last step keeps `user_share` of the remaining users, so that thresholds are
    counted on all users. Which users it keeps depends on (seed, user id) alone, and a larger share
    includes the users of a smaller one. Every step counts again, in two passes. Raises
    `InputDataError` if a filter leaves nothing.
    """
    if not settings.filters and settings.user_share == 1.0:
        return ratings, []
    activity = count_activity(ratings, keep, "all")
    steps: list[FilterStep] = []
    for number in range(1, settings.filter_rounds + 1 if settings.filters else 1):
        first = activity
        for position, entry in enumerate(settings.filters):
            kept_users, kept_items = _within_bounds(activity, entry)
            remaining = _restricted(ratings, activity, kept_users, kept_items)
            after = count_activity(remaining, keep, f"round_{number}_filter_{position}")
            steps.append(FilterStep(entry.label, number, activity, after))
            _check_not_empty(steps[-1], f"prepare.filters[{position}]")
            activity = after
        if activity.ratings == first.ratings:
            break
    if settings.user_share < 1.0:
        chosen = users.where(in_share(F.xxhash64("user_id"), settings.user_share, seed))
        kept_users = activity.by_user.join(chosen, "user", "left_semi")
        remaining = _restricted(ratings, activity, kept_users, activity.by_item)
        after = count_activity(remaining, keep, "share")
        steps.append(FilterStep(f"user_share: {settings.user_share:g}", 0, activity, after))
        _check_not_empty(steps[-1], "prepare.user_share")
        activity = after
    return _restricted(ratings, activity, activity.by_user, activity.by_item), steps


def settled(steps: Sequence[FilterStep]) -> bool:
    """Tell whether the last round dropped nothing: more rounds would change nothing."""
    last = max((step.round for step in steps), default=0)
    return all(s.before.ratings == s.after.ratings for s in steps if s.round == last > 0)


def in_share(user_key: Column, share: float, seed: int) -> Column:
    """Return whether a user is in the sample: 53 bits of a hash are below the share."""
    hashed = F.xxhash64(F.lit(seed), F.lit("user_share"), user_key)
    return F.shiftrightunsigned(hashed, 11) < F.lit(math.ceil(share * 2**53))


def short(frame: DataFrame, rows: int) -> DataFrame:
    """Return the table, marked for broadcast if it has few rows."""
    return F.broadcast(frame) if rows <= BROADCAST_ROWS else frame


def _within_bounds(activity: Activity, entry: FilterConfig) -> tuple[DataFrame, DataFrame]:
    kept_users = activity.by_user.where(_between(entry.user_min, entry.user_max))
    return kept_users, activity.by_item.where(_between(entry.item_min, entry.item_max))


def _between(least: int | None, most: int | None) -> Column:
    below = F.lit(True) if most is None else F.col("n") <= most
    return below if least is None else below & (F.col("n") >= least)


def _restricted(
    ratings: DataFrame, activity: Activity, users: DataFrame, items: DataFrame
) -> DataFrame:
    """Return the ratings of `users` for `items`, both subsets of those of `activity`."""
    return ratings.join(short(users.select("user"), activity.users), "user", "left_semi").join(
        short(items.select("item"), activity.items), "item", "left_semi"
    )


def _check_not_empty(step: FilterStep, key: str) -> None:
    if step.after.ratings == 0:
        in_round = f" in round {step.round}" if step.round > 1 else ""
        raise InputDataError(
            f"{key} ({step.label}) leaves nothing{in_round} of "
            f"{count_of(step.before.ratings, 'rating')} of {count_of(step.before.users, 'user')} "
            f"and {count_of(step.before.items, 'item')}: relax it"
        )
