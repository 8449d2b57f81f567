"""The choice of hyper-parameters in the report."""

from __future__ import annotations

import json
from typing import Any

from spark_rank.report.page import Table
from spark_rank.report.tuning import tuning_section


def row(
    learner: str, candidate: int, C: float, error: float | None, *, chosen: bool
) -> dict[str, Any]:
    text = json.dumps({"C": C, "kernel": "rbf"})
    return {"learner": learner, "candidate": candidate, "hyperparameters": text, "users": 1500,
            "error": error, "standard_error": None, "chosen": chosen}  # fmt: skip


def test_points_are_told_by_what_varies_and_the_chosen_one_stands_out() -> None:
    rows = [row("b", 1, 3.0, 1.0, chosen=True), row("a", 2, 2.0, 0.5, chosen=True),
            row("a", 1, 1.0, None, chosen=False)]  # fmt: skip
    _, table = tuning_section(rows).parts
    assert isinstance(table, Table)
    shown = [[cell.text for cell in line] for line in table.rows]
    assert shown == [
        ["a", "C 1.0", "–", "–", "1,500"],
        ["a", "C 2.0", "0.5000", "–", "1,500"],
        # the only point of a grid is told in full
        ["b", "C 3.0, kernel rbf", "1.0000", "–", "1,500"],
    ]
    assert [line[2].best for line in table.rows] == [False, True, True]
