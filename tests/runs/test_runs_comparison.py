"""Two runs side by side: their means, over how many users, and which of them say nothing."""

from __future__ import annotations

from typing import Any

from spark_rank.runs.comparison import compare
from spark_rank.runs.rendering import printed


def records(msd: float, users: int, status: str) -> dict[str, Any]:
    facts = {
        "means": {"mine": {"msd": msd, "misranking": 0.3}},
        "users": {"mine": {"msd": users, "misranking": users}},
        "status": {"mine": {status: 1508}},
        "relevant_from": 4.0,
    }
    return {"evaluate": {"seed": 0, "settings": {}, "versions": {}, "tables": {}, "facts": facts}}


def test_means_have_their_users_and_nothing_has_a_reason() -> None:
    found = compare(
        ("a", "b"), records(1.25, 1272, "learned"), records(1.5, 1508, "fallback: no_features")
    )
    (msd,) = [row for row in found["means"] if row["name"] == "mine: msd"]
    assert msd == {
        "name": "mine: msd", "first": 1.25, "first_users": 1272, "first_nothing_because": None,
        "second": None, "second_users": 1508,
        "second_nothing_because": "nothing learned (no features)",
    }  # fmt: skip
    text = printed("diff", {**found, "first": "a", "second": "b"}, "text")
    (line,) = [line for line in text.splitlines() if line.startswith("mine: msd")]
    shown = " ".join(line.split())
    assert shown == "mine: msd 1.25 (1,272) - nothing learned (no features)"


def test_errors_over_all_ratings_stand_beside_the_means() -> None:
    first, second = records(1.25, 1272, "learned"), records(1.5, 1508, "fallback: no_features")
    for own in (first, second):
        own["evaluate"]["facts"]["pooled"] = {"mine": {"rmse": 0.875}}
    found = compare(("a", "b"), first, second)
    (row,) = [row for row in found["means"] if row["name"] == "mine: rmse over all ratings"]
    assert (row["first"], row["second"]) == (0.875, None)
    assert row["second_nothing_because"] == "nothing learned (no features)"


def test_a_run_without_evaluation_has_no_means() -> None:
    found = compare(("a", "b"), records(1.25, 1272, "learned"), {})
    assert [row["second"] for row in found["means"]] == [None, None]
    text = printed("diff", {**found, "first": "a", "second": "b"}, "text")
    assert "1.25 (1,272)  null" in text
