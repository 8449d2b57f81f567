"""Hyper-parameters that were chosen on a sample of users, in the report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from spark_rank.report.page import Cell, Section, Table

Rows = Sequence[Mapping[str, Any]]

_HEADER = ["learner", "hyper-parameters", "error", "standard error", "users"]


def tuning_section(tuning: Rows) -> Section:
    """Return every point of the grids with its error; the chosen one stands out."""
    ordered = sorted(tuning, key=lambda row: (row["learner"], row["candidate"]))
    learners = dict.fromkeys(row["learner"] for row in ordered)
    body = []
    for learner in learners:
        own = [row for row in ordered if row["learner"] == learner]
        points = [json.loads(row["hyperparameters"]) for row in own]
        varied = [name for name in points[0] if any(p[name] != points[0][name] for p in points)]
        body += [
            _cells(row, point, varied or list(point))
            for row, point in zip(own, points, strict=True)
        ]
    words = (
        "Errors are means over a sample of users, from their training ratings alone; those of "
        "different learners may be on different scales."
    )
    return Section("Choice of hyper-parameters", [words, Table(_HEADER, body)])


def _cells(row: Mapping[str, Any], point: Mapping[str, Any], varied: Sequence[str]) -> list[Cell]:
    return [
        Cell(row["learner"]),
        Cell(", ".join(f"{name} {point[name]}" for name in varied), left=True),
        Cell(_number(row["error"]), best=bool(row["chosen"])),
        Cell(_number(row["standard_error"])),
        Cell(f"{row['users']:,}"),
    ]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
