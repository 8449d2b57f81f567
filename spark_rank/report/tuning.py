"""Hyper-parameters that were chosen on a sample of users, in the report, and whether they hold."""

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
    """Return every point of the grids with its error, warnings, and the errors of the chosen.

    `tuned` is what evaluate found for the same users.
    """
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
        "Errors are means over a sample of users, on training ratings that were held back from "
        "item features and learner; those of different learners may be on different scales."
    )
    parts: list[str | Table] = [words, Table(_HEADER, body)]
    parts += [f"Warning: {text}." for text in facts.edges]
    parts += _own_choices(facts.priors)
    if tuned:
        parts.append(_check(tuned))
    return Section("Choice of hyper-parameters", parts)


def _own_choices(priors: Mapping[str, PriorFacts | None]) -> list[str]:
    """Say how far single users have a choice of their own."""
    return [
        f"{learner}: every user takes the marked point, for the users' own errors choose no better."
        if prior is None
        else f"{learner}: every user starts from the errors above; with {prior.ratings:,.0f} "
        "training ratings, half of what sets the user's own errors apart counts."
        for learner, prior in sorted(priors.items())
    ]


def _check(tuned: Mapping[str, TunedScore]) -> Table:
    """Return the error of the chosen point in tuning beside that on held-out ratings."""
    return Table(
        _CHECK,
        [_check_cells(learner, found) for learner, found in sorted(tuned.items())],
        "The same users; the held-out models have learned from more ratings, so that their errors "
        "should be the smaller ones. Much greater ones are marked: the tuning was too optimistic. "
        "MSD counts pairs of different items here, which makes it a little greater than elsewhere.",
    )


def _check_cells(learner: str, found: TunedScore) -> list[Cell]:
    tuning, held_out = found.tuning, found.held_out
    cells = [Cell(learner), Cell(found.measure, left=True), Cell(_number(tuning))]
    cells.append(Cell(_number(held_out)))
    if held_out is None or tuning == 0.0:
        return [*cells, Cell("–")]
    errors = (found.tuning_standard_error or 0.0, found.held_out_standard_error or 0.0)
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
