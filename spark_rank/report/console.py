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
_NOTE = "in brackets: the number of users behind the mean"
_FEW = f"fewer than {FEWEST_USERS} users: the differences between these means may be chance"


def accuracy_lines(facts: EvaluateFacts, records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return lines with each learner's means of the main metrics and the status of its users."""
    evidence = Evidence(facts.means, facts.users, facts.status, BASELINES)
    ordered = configured_order(evidence.means, records)
    lines = _aligned([_HEADER, *[_cells(evidence, learner) for learner in ordered]])
    user_counts = [
        count for learner in ordered for metric in _MAIN
        if evidence.mean(learner, metric) is not None
        and (count := evidence.count(learner, metric)) is not None
    ]  # fmt: skip
    if user_counts:
        lines.append(_NOTE)
    if user_counts and not any(map(enough_users, user_counts)):
        lines.append(_FEW)
    for learner in ordered:
        reason = evidence.nothing_because(learner)
        if learner not in BASELINES or reason is not None:
            words = ", ".join(f"{n:,} {name}" for name, n in evidence.status[learner].items())
            lines.append(f"{learner}: {words}" + (f"; {reason}" if reason else ""))
    return lines


def _cells(evidence: Evidence, learner: str) -> tuple[str, ...]:
    counts = evidence.status[learner]
    failed = sum(n for name, n in counts.items() if name.startswith("failed"))
    means = (mean_text(evidence, learner, metric) for metric in _MAIN)
    return learner, f"{sum(counts.values()):,}", f"{failed:,}", *means


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines: names are aligned to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


def mean_text(evidence: Evidence, learner: str, metric: str) -> str:
    """Return a mean with its number of users; a dash without evidence."""
    mean, users = evidence.mean(learner, metric), evidence.count(learner, metric)
    if mean is None:
        return "-"
    return f"{mean:.4f}" + ("" if users is None else f" ({users:,})")
