"""Ensembles in the report of a run: of every user, of a sequence, of one user's sequence."""

from __future__ import annotations

from typing import Any

import pytest

from spark_rank.report.ensembles import ensembles_section
from spark_rank.report.page import Plot, Section, Table, render

DIVERSITY = [
    {"learner": "mine", "combine": "bpm", "sampling": "bernoulli", "tau": 0.3, "n_members": 100,
     "samples": 3, "angle": 12.345, "disagreement": 0.25, "presented": 30.0, "correct": 20.0,
     "updates": 10.0, "prank_passes": 100},
    {"learner": "often", "combine": "voted", "sampling": "poisson", "tau": None, "n_members": 5,
     "samples": 3, "angle": None, "disagreement": None, "presented": 99.0, "correct": 20.0,
     "updates": 33.0, "prank_passes": 5},
]  # fmt: skip
SEQUENCE: dict[str, Any] = {"sequence": "s.parquet", "user": None}


def point(learner: str, number: int, loss: float, samples: int = 3) -> dict[str, Any]:
    return {"learner": learner, "round": number, "samples": samples, "online_loss": loss,
            "ci_low": loss - 0.25, "ci_high": loss + 0.25}  # fmt: skip


CURVE = [point("prank", 2, 1.0), point("prank", 1, 2.0), point("mine", 1, 1.5),
         point("mine", 2, 0.75), point("prank_averaged", 1, 2.0)]  # fmt: skip


def metric(learner: str, name: str, mean: float | None, trials: int = 3) -> dict[str, Any]:
    ends = {"ci_low": None, "ci_high": None}
    if mean is not None and trials > 1:
        ends = {"ci_low": mean - 0.125, "ci_high": mean + 0.125}  # type: ignore[dict-item]
    return {"learner": learner, "metric": name, "trials": trials, "mean": mean, **ends}


def section_of(
    metrics: list[dict[str, Any]] | None, settings: dict[str, Any] = SEQUENCE
) -> Section:
    section = ensembles_section(CURVE, DIVERSITY, metrics, settings)
    assert section.title == "Ensembles"
    render("title", "subtitle", [section])
    return section


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_a_sequence_has_its_metrics_beside_those_of_the_rivals() -> None:
    section = section_of([
        metric("prank", "rank_loss", 0.5), metric("prank", "exact_rank", 0.5),
        metric("prank", "misranking", None),
        metric("mine", "rank_loss", 0.25), metric("mine", "exact_rank", 0.75),
        metric("mine", "misranking", None),
    ])  # fmt: skip
    words, _, metrics, diversity = section.parts
    assert words == (
        "Learned on one sequence. The rivals learn from the features of the first ensemble."
    )
    assert isinstance(metrics, Table)
    # a metric that nobody has is left out
    assert metrics.header == ["learner", "rank_loss", "exact_rank"]
    assert texts(metrics) == [
        ["prank", "0.5000 [0.3750, 0.6250]", "0.5000 [0.3750, 0.6250]"],
        ["mine", "0.2500 [0.1250, 0.3750]", "0.7500 [0.6250, 0.8750]"],
    ]
    # the least loss is best, and the greatest share of exact ranks
    best = [[cell.best for cell in row] for row in metrics.rows]
    assert best == [[False, False, False], [False, True, True]]
    assert metrics.caption == "Means over 3 trials, with t intervals."
    assert isinstance(diversity, Table)
    assert texts(diversity) == [
        ["mine", "bpm", "with probability 0.3", "100", "12.35°", "25.0 %", "30.0", "10.0", "100"],
        ["often", "voted", "Poisson(1) times", "5", "–", "–", "99.0", "33.0", "5"],
    ]


def test_a_single_trial_has_no_intervals() -> None:
    parts = section_of([metric("mine", "online_loss", 0.25, trials=1)]).parts
    table = parts[2]
    assert isinstance(table, Table)
    assert texts(table) == [["mine", "0.2500"]]
    assert table.caption == "From 1 trial."


def test_curves_are_drawn_once_a_run_of_a_learner_and_in_order() -> None:
    plot = section_of(None).parts[1]
    assert isinstance(plot, Plot)
    assert plot.alt.endswith("prank 1.000 after 2, mine 0.750 after 2.")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sequence": None, "user": "u 7"}, "Learned on the ratings of user u 7."),
        (
            {"sequence": None, "user": None},
            "Learned for every user. The tables of all learners show",
        ),
    ],
)
def test_who_was_learned_is_told(settings: dict[str, Any], words: str) -> None:
    section = section_of(None, settings)
    assert str(section.parts[0]).startswith(words)
    assert sum(isinstance(part, Table) for part in section.parts) == 1
