"""Comparisons of learners in a report: the mark says who is better, not that they differ."""

from __future__ import annotations

from typing import Any

import pytest

from spark_rank.report.accuracy import comparison_section
from spark_rank.report.page import Cell, Table


def comparison_row(difference: float, low: float | None, high: float | None) -> dict[str, Any]:
    return {
        "learner": "constant", "rival": "item_offset", "metric": "msd", "user_group": "all",
        "difference": difference, "ci_low": low, "ci_high": high, "wins": 1, "ties": 2,
        "losses": 3, "wilcoxon_p_holm": 0.5, "sign_p_holm": 0.25,
    }  # fmt: skip


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
    (table,) = comparison_section([comparison_row(sum(ends) / 2, *ends)]).parts
    assert isinstance(table, Table)
    assert table.rows[0][2] == expected


def test_a_difference_without_an_interval_is_not_marked() -> None:
    (table,) = comparison_section([comparison_row(-0.00001, None, None)]).parts
    assert isinstance(table, Table)
    assert table.rows[0][2] == Cell("+0.0000")
