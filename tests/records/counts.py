"""What `prepare` would have recorded of a data set of some size."""

from __future__ import annotations

from spark_rank.records.data import DataProfile, PrepareFacts
from spark_rank.records.facts import as_record


def prepared_counts(users: int, items: int, ratings: int, most: int) -> PrepareFacts:
    profile = DataProfile(
        ratings=ratings, users=users, items=items, density=None, user_activity=((1, users),),
        item_popularity=(), histogram=(), without_time=0, first_time=None, last_time=None,
    )  # fmt: skip
    return PrepareFacts(
        train_ratings=ratings, test_ratings=0, most_ratings_of_a_user=most,
        users_with_nothing_held_out=users, filters=(), filters_settled=True, profile=profile,
    )  # fmt: skip


def prepared_record(*sizes: int) -> dict[str, object]:
    return {"facts": as_record(prepared_counts(*sizes)), "tables": {"blocks": sizes[0]}}
