"""Chosen values at the edge of their grid are reported."""

from __future__ import annotations

from typing import Any

import pytest

from spark_rank.users.grid_edges import edges
from spark_rank.users.specs import LearnerSpec


def said(learner: str, grid: dict[str, list[Any]], **chosen: Any) -> list[str]:
    return edges(LearnerSpec("mine", learner, True, {}, grid), chosen)


@pytest.mark.parametrize(
    ("value", "words"), [(0.1, ("smallest", "smaller")), (10, ("largest", "larger"))]
)
def test_an_edge_is_named_with_the_remedy(value: float, words: tuple[str, str]) -> None:
    (text,) = said("mprank", {"C": [10, 0.1, 1]}, C=value)
    assert text == (
        f"mine: the chosen C {value} is the {words[0]} of its grid, a better value may lie beyond "
        f"it: add {words[1]} values to the learner's grid.C"
    )


def test_every_parameter_is_looked_at() -> None:
    found = said("mprank", {"C": [1, 2, 3], "gamma": [0.1, 0.2]}, C=1, gamma=0.2)
    assert [text.split(" is ")[0] for text in found] == [
        "mine: the chosen C 1", "mine: the chosen gamma 0.2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("learner", "grid", "chosen"),
    [
        ("mprank", {"C": [0.1, 1, 10]}, {"C": 1}),
        ("mprank", {"C": [1]}, {"C": 1}),
        ("mprank", {"C": [1, 1.0]}, {"C": 1}),
        ("mprank", {"kernel": ["linear", "rbf"]}, {"kernel": "rbf"}),
        ("mprank", {"gamma": [None, 0.1]}, {"gamma": 0.1}),
        # no smaller value is allowed
        ("mprank", {"growth": [0.0, 0.1, 1.0]}, {"growth": 0.0}),
        ("prank", {"epochs": [1, 5]}, {"epochs": 1}),
    ],
)
def test_what_cannot_be_widened_is_no_edge(
    learner: str, grid: dict[str, list[Any]], chosen: dict[str, Any]
) -> None:
    assert said(learner, grid, **chosen) == []
