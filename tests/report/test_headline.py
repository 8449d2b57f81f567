"""The first lines of a run's report."""

from __future__ import annotations

from typing import Any

import pytest

from spark_rank.learners import BASELINES
from spark_rank.metrics.meaning import Evidence
from spark_rank.report.headline import headline, what_ran


def evidence(
    misranking: dict[str, float | None], users: int = 943, **status: dict[str, int]
) -> Evidence:
    means = {name: {"misranking": share, "msd": 1.0} for name, share in misranking.items()}
    counts = {name: {"misranking": 0 if share is None else users, "msd": users}
              for name, share in misranking.items()}  # fmt: skip
    return Evidence(means, counts, status, BASELINES)


def against_average(difference: float, low: float, high: float) -> dict[str, Any]:
    """Return a comparison as the table has it: in the order of names."""
    return {"learner": "item_offset", "rival": "mine", "metric": "misranking", "user_group": "all",
            "difference": difference, "ci_low": low, "ci_high": high, "users": 943, "wins": 200,
            "ties": 43, "losses": 700}  # fmt: skip


def test_the_first_learner_is_told_beside_the_average_order() -> None:
    found = evidence({"mine": 0.291, "other": 0.1, "constant": 1.0, "item_offset": 0.327})
    first, basis, difference = headline(found, [against_average(0.036, 0.032, 0.041)])
    assert first == (
        "mine correctly orders 71 % of the pairs of items that a user has rated differently; "
        "the order by the items' average ratings, the same for everybody, gets 67 %."
    )
    assert "held out" in basis
    assert "943 users" in basis
    assert difference == (
        "The difference is +3.6 percentage points, with an interval from +3.2 to +4.1: better "
        "for 700 users, the same for 43, worse for 200."
    )


def test_shares_that_look_the_same_get_a_digit_and_chance_is_named() -> None:
    found = evidence({"mine": 0.291, "item_offset": 0.293})
    first, _, difference = headline(found, [against_average(0.002, -0.001, 0.005)])
    assert "70.9 %" in first
    assert "70.7 %" in first
    assert difference.startswith("The difference may be chance: +0.2")


@pytest.mark.parametrize("rival", [{}, {"item_offset": 1.0}])
def test_without_averages_of_items_it_is_held_against_chance(rival: dict[str, float]) -> None:
    lines = headline(evidence({"mine": 0.25, **rival}), [])
    assert lines[0].endswith("75 % of the pairs of items that a user has rated differently; a "
                             "random order would get 50 %.")  # fmt: skip
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (evidence({"mine": 0.3}, users=5), "Too few users for a verdict: 5 "),
        (evidence({"mine": None, "constant": None}), "No user has held-out items with different"),
        (evidence({"mine": 0.3}, mine={"fallback: no_features": 9}),
         "No verdict on mine: nothing learned (no features)."),
        (evidence({"constant": 1.0, "item_offset": 0.3}), "Only the baselines were measured"),
    ],
)  # fmt: skip
def test_without_a_result_there_is_no_figure(found: Evidence, said: str) -> None:
    (line,) = headline(found, [])
    assert line.startswith(said)
    assert "%" not in line


def records(path: str | None, learners: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "ingest": {"settings": {"path": path, "format": "csv"}, "started":
                   "2026-01-01T23:58:30+00:00", "seconds": 20.0,
                   "tables": {"ratings": 1000, "users": 10, "items": 20}},
        "train": {"settings": {"learners": learners}, "started": "2026-01-01T23:59:00+00:00",
                  "seconds": 30.0},
    }  # fmt: skip


def test_what_ran_on_which_data_and_when() -> None:
    learners = [{"name": "mine", "learner": "mprank"}, {"name": None, "learner": "prank"}]
    assert what_ran(records("a.csv", learners)) == (
        "mine (mprank), prank on 1,000 ratings of 10 users and 20 items from a.csv (csv), "
        "2026-01-01 23:58 to 23:59 UTC"
    )
    late = records(None, [])
    late["train"]["seconds"] = 90.0
    assert what_ran(late) == (
        "the baselines on 1,000 ratings of 10 users and 20 items from the generated data set, "
        "2026-01-01 23:58 to 2026-01-02 00:00 UTC"
    )
