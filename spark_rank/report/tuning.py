"""The choice of hyper-parameters on a sample of users, checked on held-out ratings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from spark_rank.records.models import PriorFacts, TuneFacts
from spark_rank.records.results import TunedScore
from spark_rank.report.page import Cell, Section, Table

Rows = Sequence[Mapping[str, Any]]

_HEADER = ["learner", "hyper-parameters", "error", "standard error", "users"]
_CHECK = ["learner", "measure", "in tuning", "on held-out ratings", "difference"]
# held-out errors that are greater by this share and by so many standard errors are marked
_TOLERATED, _EVIDENCE = 0.02, 2.0


def tuning_section(tuning: Rows, facts: TuneFacts, tuned: Mapping[str, TunedScore]) -> Section:
    """Return all grid points with their errors, warnings, and a check of the chosen points.

    `tuned` has the errors that `evaluate` measured for the same users.
    """
    ordered = sorted(tuning, key=lambda row: (row["learner"], row["candidate"]))
    learners = dict.fromkeys(row["learner"] for row in ordered)
    body = []
    for learner in learners:
        rows = [row for row in ordered if row["learner"] == learner]
        points = [json.loads(row["hyperparameters"]) for row in rows]
        varied = [name for name in points[0] if any(p[name] != points[0][name] for p in points)]
        body += [
            _cells(row, point, varied or list(point))
            for row, point in zip(rows, points, strict=True)
        ]
    words = (
        "Errors are means over a sample of users, on training ratings that neither the item "
        "features nor the learner have seen. Different learners may measure different errors."
    )
    parts: list[str | Table] = [words, Table(_HEADER, body)]
    parts += [f"Warning: {text}." for text in facts.edges]
    parts += _user_choices(facts.priors)
    if tuned:
        parts.append(_check(tuned))
    return Section("Choice of hyper-parameters", parts)


def _user_choices(priors: Mapping[str, PriorFacts | None]) -> list[str]:
    """Return a sentence per learner that chooses hyper-parameters user by user."""
    return [
        f"{learner}: all users get the marked point: choices by a user's own errors are no better."
        if prior is None
        else f"{learner}: each user's own errors adjust the errors above; with "
        f"{prior.ratings:,.0f} training ratings, they count half, with more ratings more."
        for learner, prior in sorted(priors.items())
    ]


def _check(tuned: Mapping[str, TunedScore]) -> Table:
    """Return the errors of the chosen points in tuning and on held-out ratings."""
    return Table(
        _CHECK,
        [_check_cells(learner, score) for learner, score in sorted(tuned.items())],
        "For the same users. The models behind the held-out errors have learned from more ratings, "
        "so these errors should be smaller. Much greater ones are marked: the tuning was too "
        "optimistic. Here the MSD counts only pairs of different items, which makes it a little "
        "greater than elsewhere.",
    )


def _check_cells(learner: str, score: TunedScore) -> list[Cell]:
    tuning, held_out = score.tuning, score.held_out
    cells = [Cell(learner), Cell(score.measure, left=True), Cell(_number(tuning))]
    cells.append(Cell(_number(held_out)))
    if held_out is None or tuning == 0.0:
        return [*cells, Cell("–")]
    errors = (score.tuning_standard_error or 0.0, score.held_out_standard_error or 0.0)
    noise = _EVIDENCE * math.hypot(*errors)
    worse = held_out - tuning > max(noise, _TOLERATED * tuning)
    return [*cells, Cell(f"{100.0 * (held_out / tuning - 1.0):+.1f} %", worse=worse)]


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
