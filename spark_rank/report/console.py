"""The accuracy of a run's learners as text for the console."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_rank.learners import BASELINES
from spark_rank.metrics.meaning import FEWEST_USERS, Evidence, enough_users
from spark_rank.records.results import EvaluateFacts
from spark_rank.report.learner_order import configured_order

_MAIN = ("msd", "m1d", "misranking")
_HEADER = ("learner", "users", "failed", "MSD", "M1D", "misranking")
_NOTE = "in brackets: the number of users that the mean is over"
_FEW = f"fewer than {FEWEST_USERS} users: the differences between these means may be chance"


def accuracy_lines(facts: EvaluateFacts, records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the means of the main metrics, learner by learner, and what became of the users."""
    found = Evidence(facts.means, facts.users, facts.status, BASELINES)
    ordered = configured_order(found.means, records)
    lines = _aligned([_HEADER, *[_cells(found, learner) for learner in ordered]])
    known = [
        count for learner in ordered for metric in _MAIN
        if found.mean(learner, metric) is not None
        and (count := found.count(learner, metric)) is not None
    ]  # fmt: skip
    if known:
        lines.append(_NOTE)
    if known and not any(map(enough_users, known)):
        lines.append(_FEW)
    for learner in ordered:
        reason = found.nothing_because(learner)
        if learner not in BASELINES or reason is not None:
            words = ", ".join(f"{n:,} {name}" for name, n in found.status[learner].items())
            lines.append(f"{learner}: {words}" + (f"; {reason}" if reason else ""))
    return lines


def _cells(found: Evidence, learner: str) -> tuple[str, ...]:
    counts = found.status[learner]
    failed = sum(n for name, n in counts.items() if name.startswith("failed"))
    means = (mean_text(found, learner, metric) for metric in _MAIN)
    return learner, f"{sum(counts.values()):,}", f"{failed:,}", *means


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines: names on the left, numbers right under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


def mean_text(found: Evidence, learner: str, metric: str) -> str:
    """Return a mean with the number of its users; a dash where it says nothing."""
    mean, users = found.mean(learner, metric), found.count(learner, metric)
    if mean is None:
        return "-"
    return f"{mean:.4f}" + ("" if users is None else f" ({users:,})")
