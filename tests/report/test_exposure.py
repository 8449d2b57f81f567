"""What all lists show, and lists over all items, on the page."""

from __future__ import annotations

from typing import Any

import pytest

from spark_rank.report.exposure import exposure_section, list_metrics_section
from spark_rank.report.page import Table, render

METRICS = ("ndcg", "recall", "precision", "hit_rate", "reciprocal_rank", "average_precision",
           "serendipity", "coverage", "gini", "popularity", "novelty", "diversity")  # fmt: skip


def exposed(item: str, lists: int, ratings: int) -> dict[str, Any]:
    return {"item_id": item, "title": None, "lists": lists, "item_ratings": ratings}


def test_the_most_and_the_least_exposed_items_are_named() -> None:
    rows = [exposed("rare", 1, 2), exposed("loved", 6, 32), exposed("known", 3, 8)]
    section = exposure_section(rows, candidates=12, users=10)
    words, most, least = section.parts
    assert isinstance(words, str)
    assert isinstance(most, Table)
    assert isinstance(least, Table)
    assert "3 of 12 items are in the top of some list (coverage 25.0 %), 9 items in none" in words
    assert "The item most often listed is in 60.0 % of lists" in words
    # (6 · 32 + 3 · 8 + 2) / 10 and 2^((6 · 5 + 3 · 3 + 1) / 10)
    assert "has 22 ratings on average, and 16 in the geometric mean" in words
    assert [row[0].text for row in most.rows] == ["loved", "known", "rare"]
    assert [row[0].text for row in least.rows] == ["rare", "known", "loved"]
    assert [cell.text for cell in most.rows[0][1:]] == ["6", "60.00 %", "32"]


def measure(learner: str, metric: str, group: str, mean: float | None) -> dict[str, Any]:
    high = None if mean is None else mean + 0.01
    return {"learner": learner, "metric": metric, "user_group": group, "mean": mean,
            "users": 7 if mean is not None else 0, "ci_high": high}  # fmt: skip


def test_lists_stand_beside_those_of_the_most_popular_items() -> None:
    rows = [measure(learner, metric, group, value if group != "3-19" else None)
            for learner, value in (("most_popular", 0.2), ("mine", 0.4), ("item_offset", 0.1))
            for group in ("all", "3-19", "20+") for metric in METRICS]  # fmt: skip
    section = list_metrics_section(rows, 10, "all")
    overall, groups = (part for part in section.parts if isinstance(part, Table))
    assert overall.header == ["", "mine", "item_offset", "most_popular"]
    ndcg = overall.rows[0]
    assert [cell.text for cell in ndcg] == ["NDCG@10", "0.4000 ± 0.0100", "0.1000 ± 0.0100",
                                            "0.2000 ± 0.0100"]  # fmt: skip
    assert [cell.best for cell in ndcg] == [False, True, False, False]
    assert not any(cell.best for row in overall.rows if row[0].text == "coverage" for cell in row)
    assert [[cell.text for cell in row] for row in groups.rows] == [
        ["20+", "7", "0.4000", "0.1000", "0.2000"]
    ]
    assert "among all items" in overall.caption
    assert "sample" in str(list_metrics_section(rows, 10, "sampled").parts[0])
    assert "Lists over all items" in render("run", "", [section])


@pytest.mark.parametrize("metric", METRICS)
def test_every_figure_is_shown(metric: str) -> None:
    rows = [measure("mine", each, "all", float(each == metric)) for each in METRICS]
    table = list_metrics_section(rows, 5, "all").parts[0]
    assert isinstance(table, Table)
    assert sum(row[1].text.startswith("1") for row in table.rows) == 1
