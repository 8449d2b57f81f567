"""A few users' lists in the report."""

from __future__ import annotations

from typing import Any

from spark_rank.records.results import RecommendFacts
from spark_rank.report.page import Table, render
from spark_rank.report.recommendations import recommendations_section


def row(user: str, name: str, position: int, **more: Any) -> dict[str, Any]:
    return {"user_id": user, "list": name, "position": position, "item_id": f"i{position}",
            "title": None, "score": 4.0, "predicted_rating": 4.0, "source": "learned",
            "item_ratings": 7, **more}  # fmt: skip


def test_the_beginnings_of_lists_are_in_order() -> None:
    new_item = {"predicted_rating": None, "source": "new_item"}
    sample = [row("b", "bottom", 1, title="<Worst>"), row("b", "top", 2), row("a", "top", 6),
              row("b", "top", 1, **new_item), row("a", "top", 5)]  # fmt: skip
    places = {"learned": 3600, "fallback: too_few_ratings": 12}
    facts = RecommendFacts(users=1200, learner="one", candidates=17, places=places)
    liked = [{"user_id": "b", "item_id": "i9", "title": "Loved", "rating": 5.0},
             {"user_id": "b", "item_id": "i8", "title": None, "rating": 4.5}]  # fmt: skip
    section = recommendations_section(sample, facts, liked)
    (table,) = [part for part in section.parts if isinstance(part, Table)]
    shown = [[cell.text for cell in cells] for cells in table.rows]
    assert [cells[:4] for cells in shown] == [
        ["user a"], ["5", "top", "i5", "7"],
        ["user b"], ["1", "rated", "Loved", ""], ["2", "rated", "i8", ""],
        ["1", "top", "i1", "7"], ["2", "top", "i2", "7"], ["1", "bottom", "<Worst>", "7"],
    ]  # fmt: skip
    assert shown[3][5:] == ["5 given", ""]
    assert shown[5][5:] == ["–", "new_item"]
    page = render("run", "", [section])
    for words in (
        "1,200 users",
        "17 items may be in a list",
        "12 fallback: too_few_ratings",
        "&lt;Worst&gt;",
    ):
        assert words in page


def test_without_lists_there_is_a_sentence() -> None:
    nobody = RecommendFacts(users=0, learner="one", candidates=1, places={})
    section = recommendations_section([], nobody)
    assert section.parts == ["No user has an unseen item that may be in a list."]
