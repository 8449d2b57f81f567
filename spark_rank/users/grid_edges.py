"""Reports chosen hyper-parameters at the edge of a grid: a better value may lie outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_rank.learners.parameters import Integer, Real
from spark_rank.users.specs import LearnerSpec


def edges(spec: LearnerSpec, chosen: Mapping[str, Any]) -> list[str]:
    """Return a sentence for every chosen number that is the smallest or largest of its grid.

    Edges where the range of the parameter itself ends are left out: the grid cannot grow there.
    """
    sentences = []
    for name, values in spec.grid.items():
        numbers = [value for value in values if _is_number(value)]
        if len(set(numbers)) < 2 or len(numbers) < len(values):
            continue
        value, low, high = chosen[name], *_range(spec, name)
        edge = None
        if value == min(numbers) and value != low:
            edge = "smallest", "smaller"
        elif value == max(numbers) and value != high:
            edge = "largest", "larger"
        if edge is not None:
            sentences.append(
                f"{spec.label}: the chosen {name} {value} is the {edge[0]} of its grid, a better "
                f"value may lie beyond it: add {edge[1]} values to the learner's grid.{name}"
            )
    return sentences


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _range(spec: LearnerSpec, name: str) -> tuple[float | None, float | None]:
    """Return the smallest and largest value that the parameter allows; None without a limit."""
    parameter = spec.kind.parameters[name]
    if isinstance(parameter, Real):
        return parameter.at_least, parameter.at_most
    return (parameter.at_least if isinstance(parameter, Integer) else None), None
