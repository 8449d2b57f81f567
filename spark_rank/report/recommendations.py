"""A few users' lists of unseen items in the report, beside what they rated highest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_rank.records.results import RecommendFacts
from spark_rank.report.page import Cell, Section, Table
from spark_rank.wording import count_of

Rows = Sequence[Mapping[str, Any]]

SHOWN_USERS = 3
SHOWN_RATINGS = 5
_SHOWN_PLACES = 5
_LISTS = ("top", "bottom")
_TITLE = "Unseen items for a few users"
_HEADER = ["place", "list", "item", "its ratings", "score", "rating", "source"]


def recommendations_section(sample: Rows, facts: RecommendFacts, liked: Rows = ()) -> Section:
    """Return how many lists there are, how they were made, and the first places of a few.

    `liked` has ``user_id, item_id, title, rating`` of what these users rated highest, in order.
    """
    if not facts.users:
        return Section(_TITLE, ["No user has an unseen item that may be in a list."])
    words = (
        f"Lists for {count_of(facts.users, 'user')} by {facts.learner}, learned from "
        f"{_learned_from(facts)}; {count_of(facts.candidates, 'item')} may be in a list. "
        "Places by the source of their scores: "
        + ", ".join(f"{count:,} {source}" for source, count in facts.places.items())
        + "."
    )
    rows = [row for row in sample if row["position"] <= _SHOWN_PLACES]
    rows.sort(key=lambda row: (row["user_id"], _LISTS.index(row["list"]), row["position"]))
    body: list[list[Cell]] = []
    for user in dict.fromkeys(row["user_id"] for row in rows):
        own = [row for row in liked if row["user_id"] == user]
        body.append([Cell(f"user {user}")])
        body += [_rated_cells(place, row) for place, row in enumerate(own, start=1)]
        body += [_cells(row) for row in rows if row["user_id"] == user]
    caption = "Rated: what the user rated highest, with the ratings given."
    return Section(_TITLE, [words, Table(_HEADER, body, caption if liked else "")])


def _rated_cells(place: int, row: Mapping[str, Any]) -> list[Cell]:
    name, rating = row["title"] or row["item_id"], f"{row['rating']:g} given"
    texts = (("rated", True), (name, True), ("", False), ("", False), (rating, False), ("", True))
    return [Cell(str(place)), *[Cell(text, left=left) for text, left in texts]]


def _learned_from(facts: RecommendFacts) -> str:
    return "all ratings" if facts.all_ratings else "the training part of the ratings"


def _cells(row: Mapping[str, Any]) -> list[Cell]:
    rating = row["predicted_rating"]
    return [
        Cell(str(row["position"])),
        Cell(row["list"], left=True),
        Cell(row["title"] or row["item_id"], left=True),
        Cell(f"{row['item_ratings']:,}"),
        Cell(f"{row['score']:.3f}"),
        Cell("–" if rating is None else f"{rating:.2f}"),
        Cell(row["source"], left=True),
    ]
