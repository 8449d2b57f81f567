"""The choice of hyper-parameters in the report."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from spark_rank.records.models import PriorFacts, TuneFacts
from spark_rank.records.results import TunedScore
from spark_rank.report.page import Table
from spark_rank.report.tuning import tuning_section

NOTHING = TuneFacts(chosen={}, priors={}, edges=(), failures=0)


def row(
    learner: str, candidate: int, C: float, error: float | None, *, chosen: bool
) -> dict[str, Any]:
    text = json.dumps({"C": C, "kernel": "rbf"})
    return {"learner": learner, "candidate": candidate, "hyperparameters": text, "users": 1500,
            "error": error, "standard_error": None, "chosen": chosen}  # fmt: skip


def test_points_are_told_by_what_varies_and_the_chosen_one_stands_out() -> None:
    rows = [row("b", 1, 3.0, 1.0, chosen=True), row("a", 2, 2.0, 0.5, chosen=True),
            row("a", 1, 1.0, None, chosen=False)]  # fmt: skip
    _, table = tuning_section(rows, NOTHING, {}).parts
    assert isinstance(table, Table)
    shown = [[cell.text for cell in line] for line in table.rows]
    assert shown == [
        ["a", "C 1.0", "–", "–", "1,500"],
        ["a", "C 2.0", "0.5000", "–", "1,500"],
        # the only point of a grid is told in full
        ["b", "C 3.0, kernel rbf", "1.0000", "–", "1,500"],
    ]
    assert [line[2].best for line in table.rows] == [False, True, True]


def scores(tuning: float, held_out: float | None) -> TunedScore:
    return TunedScore(
        measure="msd", tuning=tuning, tuning_standard_error=0.01, held_out=held_out,
        held_out_standard_error=0.01,
    )  # fmt: skip


def test_what_tuning_promised_stands_beside_what_came_of_it() -> None:
    rows = [row(name, 1, 1.0, 1.0, chosen=True) for name in ("fair", "fooled", "unknown")]
    tuned = {"fair": scores(1.0, 0.99), "fooled": scores(1.0, 1.2), "unknown": scores(1.0, None)}
    table = tuning_section(rows, NOTHING, tuned).parts[-1]
    assert isinstance(table, Table)
    assert [[cell.text for cell in line] for line in table.rows] == [
        ["fair", "msd", "1.0000", "0.9900", "-1.0 %"],
        ["fooled", "msd", "1.0000", "1.2000", "+20.0 %"],
        ["unknown", "msd", "1.0000", "–", "–"],
    ]
    assert [line[-1].worse for line in table.rows] == [False, True, False]


def test_edges_and_own_choices_are_sentences() -> None:
    priors = {"a": PriorFacts((1.0,), (1.0,), 100.0), "b": None}
    facts = replace(NOTHING, edges=("a: the chosen C",), priors=priors)
    parts = tuning_section([row("a", 1, 3.0, 1.0, chosen=True)], facts, {}).parts
    assert parts[2] == "Warning: a: the chosen C."
    assert (
        "a: each user's own errors adjust the errors above; with 100 training ratings" in parts[3]
    )
    assert "b: all users get the marked point" in parts[4]
