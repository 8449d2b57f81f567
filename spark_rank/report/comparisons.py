"""Learners against each other over the same users, from the view of those that were trained."""

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


def seen_from_learners(comparison: Rows, learners: Sequence[str]) -> list[Row]:
    """Return the pairs over all users with a learner first, in the order of `learners`.

    A difference has the sign that the first one sees. Two baselines are no pair.
    """
    places = {name: place for place, (name, _) in enumerate(in_order(learners))}
    pairs = [
        row if places[row["learner"]] < places[row["rival"]] else _turned(row)
        for row in comparison
        if row["user_group"] == "all" and not {row["learner"], row["rival"]} <= BASELINES.keys()
    ]
    return sorted(pairs, key=lambda row: (places[row["learner"]], places[row["rival"]]))


def comparison_section(comparison: Rows, found: Evidence) -> Section:
    """Return every pair with a learner on the main metrics."""
    pairs = seen_from_learners(comparison, list(found.means))
    if not pairs:
        return Section(TITLE, ["There is no second learner to compare with."])
    reasons = [_nothing_because(row, found) for row in pairs]
    if None not in reasons:
        return Section(TITLE, [f"There is nothing to compare: {reasons[0]}."])
    body: list[list[Cell]] = []
    for metric, (title, _) in MAIN_METRICS.items():
        rows = [_cells(row, found) for row in pairs if row["metric"] == metric]
        body += [[Cell(title)], *rows] if rows else []
    caption = (
        "User by user: the mean difference, with its t interval; below 0 the first learner is "
        "better. Where the interval excludes 0, it is marked: ✓ if the first learner is better, ✗ "
        "if it is worse. p-values are corrected by Holm's method over the pairs of a metric. With "
        f"fewer than {FEWEST_USERS} users there is no interval, no mark and no p-value."
    )
    return Section(TITLE, [Table(_HEADER, body, caption)])


def _turned(row: Row) -> Row:
    """Return the comparison as the rival sees it."""
    turned = {
        "learner": row["rival"], "rival": row["learner"], "wins": row["losses"],
        "losses": row["wins"], "difference": _negative(row["difference"]),
        "ci_low": _negative(row["ci_high"]), "ci_high": _negative(row["ci_low"]),
    }  # fmt: skip
    return {**row, **turned}


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def _nothing_because(row: Row, found: Evidence) -> str | None:
    """Say why a pair cannot be compared; None if it can."""
    reasons = map(found.nothing_because, (row["learner"], row["rival"]))
    return next((reason for reason in reasons if reason is not None), None)


def _cells(row: Row, found: Evidence) -> list[Cell]:
    name = Cell(f"{row['learner']} − {row['rival']}")
    reason = _nothing_because(row, found)
    if reason is not None or row["difference"] is None:
        return [name, Cell("–", note=reason or "no user has both"), *[Cell("–")] * 4]
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
    # of all main metrics less is better
    return Cell(text, best=high < 0.0, worse=low > 0.0)
