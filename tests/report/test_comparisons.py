"""Comparisons of learners in a report: the mark says who is better, not that they differ."""

from __future__ import annotations

from typing import Any

import pytest

from spark_rank.learners import BASELINES
from spark_rank.metrics.meaning import Evidence
from spark_rank.report.comparisons import comparison_section, ordered_pairs
from spark_rank.report.page import Cell, Table

BOTH = ("mine", "item_offset")


def comparison_row(
    difference: float,
    low: float | None,
    high: float | None,
    pair: tuple[str, str] = BOTH,
    users: int = 60,
) -> dict[str, Any]:
    return {
        "learner": pair[0], "rival": pair[1], "metric": "msd", "user_group": "all",
        "difference": difference, "ci_low": low, "ci_high": high, "wins": 10, "ties": 20,
        "losses": 30, "users": users, "wilcoxon_p_holm": 0.5, "sign_p_holm": 0.25,
    }  # fmt: skip


def evidence(*learners: str, **status: dict[str, int]) -> Evidence:
    means = {name: {"msd": 1.0, "misranking": 0.3} for name in learners}
    return Evidence(means, {}, status, BASELINES)


def rows_of(row: dict[str, Any], found: Evidence | None = None) -> list[list[Cell]]:
    (table,) = comparison_section([row], found or evidence("mine", "item_offset")).parts
    assert isinstance(table, Table)
    assert [cell.text for cell in table.rows[0]] == ["MSD"]
    return [list(cells) for cells in table.rows[1:]]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0.1, 0.2), Cell("+0.1500 [+0.1000, +0.2000]", worse=True)),
        ((-0.2, -0.1), Cell("−0.1500 [−0.2000, −0.1000]", best=True)),
        ((-0.1, 0.4), Cell("+0.1500 [−0.1000, +0.4000]")),
    ],
)
def test_a_difference_is_marked_for_the_first_learner(
    ends: tuple[float, float], expected: Cell
) -> None:
    ((_, difference, *_),) = rows_of(comparison_row(sum(ends) / 2, *ends))
    assert difference == expected


def test_a_difference_without_an_interval_is_not_marked() -> None:
    assert rows_of(comparison_row(-0.00001, None, None))[0][1] == Cell("+0.0000")


def test_a_baseline_against_a_learner_is_turned_round() -> None:
    row = comparison_row(0.15, 0.1, 0.2, ("item_offset", "mine"))
    ((name, difference, users, counts, *_),) = rows_of(row)
    assert name.text == "mine − item_offset"
    assert difference == Cell("−0.1500 [−0.2000, −0.1000]", best=True)
    assert (users.text, counts.text) == ("60", "30 / 20 / 10")


def test_baselines_are_no_pair_and_learners_stand_in_order() -> None:
    pairs = [("constant", "item_offset"), ("a", "b"), ("a", "constant"), ("b", "item_offset")]
    made = [comparison_row(0.1, None, None, pair) for pair in pairs]
    seen = ordered_pairs(made, ["b", "a", "constant", "item_offset"])
    assert [(row["learner"], row["rival"]) for row in seen] == [
        ("b", "a"), ("b", "item_offset"), ("a", "constant")
    ]  # fmt: skip
    assert seen[0]["difference"] == -0.1


def test_few_users_are_no_evidence() -> None:
    ((_, difference, users, _, *tests),) = rows_of(comparison_row(-0.2, -0.3, -0.1, users=5))
    assert difference == Cell("−0.2000")
    assert users.text == "5"
    assert [cell.text for cell in tests] == ["–", "–"]


def test_a_learner_that_learned_nothing_is_not_compared() -> None:
    found = evidence("mine", "item_offset", mine={"fallback: no_features": 60})
    section = comparison_section([comparison_row(-0.2, -0.3, -0.1)], found)
    assert section.parts == ["There is nothing to compare: nothing learned (no features)."]
    found = evidence("mine", "other", "item_offset", mine={"fallback: no_features": 60})
    other = comparison_row(-0.2, -0.3, -0.1, ("other", "item_offset"))
    (table,) = comparison_section([comparison_row(-0.2, -0.3, -0.1), other], found).parts
    assert isinstance(table, Table)
    _, difference, *others = table.rows[1]
    assert difference == Cell("–", note="nothing learned (no features)")
    assert {cell.text for cell in others} == {"–"}


def test_a_single_learner_has_nobody_to_be_compared_with() -> None:
    section = comparison_section([], evidence("mine"))
    assert section.parts == ["There is no second learner to compare with."]
