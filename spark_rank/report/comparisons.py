"""Pairs of learners compared over the same users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_rank.learners import BASELINES
from spark_rank.metrics.meaning import FEWEST_USERS, Evidence, enough_users
from spark_rank.report.accuracy import MAIN_METRICS
from spark_rank.report.learner_order import in_order
from spark_rank.report.numbers import p_value, shown
from spark_rank.report.page import Cell, Section, Table

Row = Mapping[str, Any]
Rows = Sequence[Row]

TITLE = "Learners compared over the same users"
_HEADER = ["learners", "difference", "users", "better / same / worse", "Wilcoxon p", "sign p"]


def ordered_pairs(comparison: Rows, learners: Sequence[str]) -> list[Row]:
    """Return the comparisons over all users, the earlier of `learners` first in each.

    A difference is that of the first learner minus the second. Pairs of baselines are left out.
    """
    places = {name: place for place, (name, _) in enumerate(in_order(learners))}
    pairs = [
        row if places[row["learner"]] < places[row["rival"]] else _swapped(row)
        for row in comparison
        if row["user_group"] == "all" and not {row["learner"], row["rival"]} <= BASELINES.keys()
    ]
    return sorted(pairs, key=lambda row: (places[row["learner"]], places[row["rival"]]))


def comparison_section(comparison: Rows, evidence: Evidence) -> Section:
    """Return the comparisons of all pairs on the main metrics, but for pairs of baselines."""
    pairs = ordered_pairs(comparison, list(evidence.means))
    if not pairs:
        return Section(TITLE, ["There is no second learner to compare with."])
    reasons = [_nothing_because(row, evidence) for row in pairs]
    if None not in reasons:
        return Section(TITLE, [f"There is nothing to compare: {reasons[0]}."])
    body: list[list[Cell]] = []
    for metric, (title, _) in MAIN_METRICS.items():
        rows = [_cells(row, evidence) for row in pairs if row["metric"] == metric]
        body += [[Cell(title)], *rows] if rows else []
    caption = (
        "The mean of the users' differences, with its t interval; below 0 the first learner is "
        "better. A difference whose interval excludes 0 is marked: ✓ if the first learner is "
        "better, ✗ if it is worse. p-values are corrected by Holm's method over the pairs of a "
        "metric. With "
        f"fewer than {FEWEST_USERS} users there is no interval, no mark and no p-value."
    )
    return Section(TITLE, [Table(_HEADER, body, caption)])


def _swapped(row: Row) -> Row:
    """Return the comparison with the learner and its rival swapped."""
    swapped = {
        "learner": row["rival"], "rival": row["learner"], "wins": row["losses"],
        "losses": row["wins"], "difference": _negative(row["difference"]),
        "ci_low": _negative(row["ci_high"]), "ci_high": _negative(row["ci_low"]),
    }  # fmt: skip
    return {**row, **swapped}


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def _nothing_because(row: Row, evidence: Evidence) -> str | None:
    """Return why a pair cannot be compared; None if it can."""
    reasons = map(evidence.nothing_because, (row["learner"], row["rival"]))
    return next((reason for reason in reasons if reason is not None), None)


def _cells(row: Row, evidence: Evidence) -> list[Cell]:
    name = Cell(f"{row['learner']} − {row['rival']}")
    reason = _nothing_because(row, evidence)
    if reason is not None or row["difference"] is None:
        return [name, Cell("–", note=reason or "no user has both values"), *[Cell("–")] * 4]
    enough = enough_users(row["users"])
    return [
        name,
        _difference_cell(row),
        Cell(f"{row['users']:,}"),
        Cell(f"{row['wins']:,} / {row['ties']:,} / {row['losses']:,}"),
        Cell(p_value(row["wilcoxon_p_holm"] if enough else None)),
        Cell(p_value(row["sign_p_holm"] if enough else None)),
    ]


def _difference_cell(row: Row) -> Cell:
    low, high = row["ci_low"], row["ci_high"]
    if low is None or not enough_users(row["users"]):
        return Cell(shown(row["difference"], "+.4f"))
    difference, low_end, high_end = (shown(v, "+.4f") for v in (row["difference"], low, high))
    text = f"{difference} [{low_end}, {high_end}]"
    # lower is better for all main metrics
    return Cell(text, best=high < 0.0, worse=low > 0.0)
