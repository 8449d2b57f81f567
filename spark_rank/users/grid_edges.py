"""Tells where the chosen point lies at the edge of its grid: a better one may lie outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_rank.learners.parameters import Integer, Real
from spark_rank.users.specs import LearnerSpec


def edges(spec: LearnerSpec, chosen: Mapping[str, Any]) -> list[str]:
    """Return a sentence for every number that is the least or the greatest of its grid.

    A grid that already ends where the parameter's range does cannot be widened there.
    """
    found = []
    for name, values in spec.grid.items():
        numbers = [value for value in values if _is_number(value)]
        if len(set(numbers)) < 2 or len(numbers) < len(values):
            continue
        value, low, high = chosen[name], *_range(spec, name)
        end = None
        if value == min(numbers) and value != low:
            end = "smallest", "smaller"
        elif value == max(numbers) and value != high:
            end = "largest", "larger"
        if end is not None:
            found.append(
                f"{spec.label}: the chosen {name} {value} is the {end[0]} of its grid, a better "
                f"value may lie beyond it: add {end[1]} values to the learner's grid.{name}"
            )
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _range(spec: LearnerSpec, name: str) -> tuple[float | None, float | None]:
    """Return the least and the greatest value that the parameter may take; None without one."""
    parameter = spec.kind.parameters[name]
    if isinstance(parameter, Real):
        return parameter.at_least, parameter.at_most
    return (parameter.at_least if isinstance(parameter, Integer) else None), None
