"""Means in a report: marked where that says something, each with the number of its users."""

from __future__ import annotations

from typing import Any

import pytest

from spark_rank.report.accuracy import (
    MAIN_METRICS,
    errors_section,
    evidence_of,
    groups_section,
    other_metrics_section,
    roc_section,
    summary_section,
)
from spark_rank.report.page import Cell, Notes, Section, Table
from tests.report.summaries import status_of, summary

LEARNED = {"mine": 1.0, "constant": 2.0}


def table_of(section: Section) -> Table:
    return next(part for part in section.parts if isinstance(part, Table))


def cells(section: Section) -> dict[str, list[Cell]]:
    return {row[0].text: list(row[1:]) for row in table_of(section).rows}


def summary_of(rows: list[dict[str, Any]], **status: dict[str, int]) -> dict[str, list[Cell]]:
    return cells(summary_section(rows, status_of(rows) | status))


def test_every_mean_says_over_how_many_users_it_is() -> None:
    rows = summary(LEARNED, users=1272)
    found = summary_of(rows, mine={"learned": 1508}, constant={"learned": 1272})
    assert found["mine"][0] == Cell("1.0000 ± 0.1000", best=True, note="over 1,272 of 1,508")
    assert found["constant"][0] == Cell("2.0000 ± 0.1000", note="over all 1,272")


def test_own_learners_stand_above_the_baselines() -> None:
    rows = summary({"constant": 2.0, "item_offset": 1.5, "z": 1.0, "a": 1.2})
    assert list(summary_of(rows)) == ["z", "a", "constant", "item_offset"]


@pytest.mark.parametrize("users", [2, 5])
def test_two_users_have_no_interval_and_no_best(users: int) -> None:
    found = summary_of(summary(LEARNED, users=users))
    assert found["mine"][0] == Cell("1.0000", note=f"over all {users}")


def test_equal_ratings_and_fallbacks_are_dashes_with_a_reason() -> None:
    for cell in summary_of(summary({"mine": 0.0, "constant": 0.0}, misranking=None))["mine"]:
        assert cell == Cell("–", note="held-out ratings all equal")
    found = summary_of(summary(LEARNED), mine={"fallback: no_features": 60})
    for cell in found["mine"]:
        assert cell == Cell("–", note="nothing learned (no features)")
    assert not any(cell.best for cell in found["constant"])
    found = summary_of(summary(LEARNED, misranking=1.0))
    assert found["mine"][0] == Cell("–", note="scores all equal")


def test_a_constant_never_wins_what_costs_it_nothing() -> None:
    rows = summary({"mine": 0.4, "constant": 0.0})
    found = cells(other_metrics_section(rows, status_of(rows), 10, 4.0))
    for name in ("hinge rank cost", "HMP, n = 1", "HMP, n = 2"):
        assert [cell.best for cell in found[name]] == [False, False, False]
        assert found[name][0].text == "lower, 0 for a constant"
    assert [cell.best for cell in found["rank loss"]] == [False, False, True]


def test_metrics_of_the_top_tell_their_length_and_relevance() -> None:
    rows = summary(LEARNED)
    section = other_metrics_section(rows, status_of(rows), 7, 3.5)
    assert {"NDCG@7", "precision@7", "recall@7", "average precision@7"} <= cells(section).keys()
    (notes,) = [part for part in section.parts if isinstance(part, Notes)]
    assert "its rating is at least 3.5" in " ".join(notes.sentences)


def test_main_metrics_are_explained_in_one_sentence_each() -> None:
    section = summary_section(rows := summary(LEARNED), status_of(rows))
    (notes,) = [part for part in section.parts if isinstance(part, Notes)]
    assert len(notes.sentences) == len(MAIN_METRICS)
    for sentence, (title, _) in zip(notes.sentences, MAIN_METRICS.values(), strict=True):
        assert sentence.lower().startswith(title.lower())
        assert sentence.endswith(".")
        assert ". " not in sentence
    assert "itself" in notes.sentences[0]


def test_errors_of_ratings_are_shown_where_nothing_can_be_ordered() -> None:
    rows = summary(LEARNED, misranking=None)
    found = cells(errors_section(rows, status_of(rows)))
    assert [cell.text for cell in found["mine"]] == ["1.0000"] * 2 + ["1.0000 ± 0.1000"] * 2
    assert found["mine"][2].best
    nothing = cells(errors_section(rows, status_of(rows) | {"mine": {"fallback: no_features": 60}}))
    assert [cell.text for cell in nothing["mine"]] == ["–"] * 4


def test_a_group_of_two_has_no_mark_and_a_cold_one_no_learner() -> None:
    rows = summary(LEARNED, users=60)
    for group, users in (("300+", 2), ("cold", 9), ("3-19", 8)):
        rows += summary(LEARNED, users=users, group=group)
    found = cells(groups_section(rows, status_of(rows)))
    assert list(found) == ["cold", "3-19", "300+"]
    assert found["300+"] == [Cell("2"), Cell("1.0000"), Cell("2.0000")]
    assert found["cold"][1] == Cell("–", note="nothing learned (too few ratings)")
    assert found["3-19"][1] == Cell("1.0000 ± 0.1000", best=True)


def test_roc_curves_are_of_learners_that_say_something() -> None:
    rows = summary(LEARNED)
    roc = [{"learner": name, "user_group": "all", "false_positive_rate": x,
            "true_positive_rate": x} for name in LEARNED for x in (0.0, 1.0)]  # fmt: skip
    found = evidence_of(rows, status_of(rows) | {"mine": {"fallback: no_features": 60}})
    (plot,) = roc_section(roc, found).parts
    assert "mine" not in plot.svg  # type: ignore[union-attr]
    assert "constant" in plot.svg  # type: ignore[union-attr]
