"""The result of a run in words: the first lines of its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from spark_rank.learners import BASELINES
from spark_rank.metrics.meaning import FEWEST_USERS, NOTHING_TO_ORDER, Evidence, enough_users
from spark_rank.report.comparisons import ordered_pairs
from spark_rank.report.numbers import shown

Row = Mapping[str, Any]
Records = Mapping[str, Mapping[str, Any]]

_METRIC, _RIVAL = "misranking", "item_offset"


def headline(evidence: Evidence, comparison: Sequence[Row]) -> list[str]:
    """Return how many pairs the first learner orders correctly, beside the items' averages.

    The learners of `evidence` are in the order of the report.
    """
    learners = [name for name in evidence.means if name not in BASELINES]
    if not learners:
        return ["Only the baselines were measured: no learner was trained."]
    with_results = [name for name in learners if evidence.nothing_because(name) is None]
    if not with_results:
        return [_nothing(learners[0], evidence.nothing_because(learners[0]) or "")]
    learner = with_results[0]
    users, wrong = evidence.count(learner, _METRIC) or 0, evidence.mean(learner, _METRIC)
    if wrong is None or not enough_users(users):
        return [
            f"Too few users for a verdict: {users:,} with different ratings among the held-out "
            f"ones; it takes at least {FEWEST_USERS} to tell a learner from chance."
        ]
    rival = evidence.mean(_RIVAL, _METRIC) if _RIVAL in evidence.means else None
    if rival is None or rival == 1.0:  # this baseline is a constant
        return [_sentence(learner, wrong, None), _basis(users)]
    return [_sentence(learner, wrong, rival), _basis(users),
            *_difference(learner, evidence, comparison)]  # fmt: skip


def what_ran(records: Records) -> str:
    """Return learners, data and time of a run in one line."""
    ingest, settings = records["ingest"], records["ingest"]["settings"]
    tables, path = ingest["tables"], settings.get("path")
    source = f"{path} ({settings['format']})" if path else "the generated data set"
    entries = (records.get("train") or {}).get("settings", {}).get("learners", ())
    names = ", ".join(_named(entry) for entry in entries) or "the baselines"
    return (
        f"{names} on {tables['ratings']:,} ratings of {tables['users']:,} users and "
        f"{tables['items']:,} items from {source}, {_when(records)}"
    )


def _nothing(learner: str, reason: str) -> str:
    if reason == NOTHING_TO_ORDER:
        return (
            "No user has held-out items with different ratings, so no order can be right or wrong."
        )
    return f"No verdict on {learner}: {reason}."


def _sentence(learner: str, wrong: float, rival: float | None) -> str:
    share, other = _shares(1.0 - wrong, None if rival is None else 1.0 - rival)
    comparison = (
        "a random order would get 50 %"
        if rival is None
        else f"the order by the items' average ratings, the same for everybody, gets {other}"
    )
    return (
        f"{learner} correctly orders {share} of the pairs of items that a user has rated "
        f"differently; {comparison}."
    )


def _shares(first: float, second: float | None) -> tuple[str, str]:
    """Return the shares as whole percentages, with one more digit if they would look the same."""
    other = first if second is None else second
    alike = second is not None and round(100 * first) == round(100 * other)
    form = ".1f" if alike else ".0f"
    return f"{100 * first:{form}} %", f"{100 * other:{form}} %"


def _basis(users: int) -> str:
    return f"Measured on ratings held out from learning; the mean over {users:,} users."


def _difference(learner: str, evidence: Evidence, comparison: Sequence[Row]) -> list[str]:
    """Return the difference in percentage points, and whether it may be chance."""
    rows = [
        row for row in ordered_pairs(comparison, list(evidence.means))
        if (row["learner"], row["rival"], row["metric"]) == (learner, _RIVAL, _METRIC)
    ]  # fmt: skip
    if not rows or rows[0]["ci_low"] is None or not enough_users(rows[0]["users"]):
        return []
    row = rows[0]
    # a learner that misranks less gains
    gain, low, high = (-100.0 * row[end] for end in ("difference", "ci_high", "ci_low"))
    points = f"{shown(gain, '+.1f')} percentage points, with an interval from {shown(low, '+.1f')} "
    points += f"to {shown(high, '+.1f')}"
    if low <= 0.0 <= high:
        return [f"The difference may be chance: {points}."]
    return [f"The difference is {points}: better for {row['wins']:,} users, the same for "
            f"{row['ties']:,}, worse for {row['losses']:,}."]  # fmt: skip


def _named(entry: Row) -> str:
    name = entry["name"]
    return f"{name} ({entry['learner']})" if name and name != entry["learner"] else entry["learner"]


def _when(records: Records) -> str:
    """Return when the first stage began and the last one ended."""
    starts = [datetime.fromisoformat(str(record["started"])) for record in records.values()]
    ends = [start + timedelta(seconds=record["seconds"])
            for start, record in zip(starts, records.values(), strict=True)]  # fmt: skip
    first, last = min(starts), max(ends)
    form = "%H:%M" if first.date() == last.date() else "%Y-%m-%d %H:%M"
    return f"{first:%Y-%m-%d %H:%M} to {last.strftime(form)} {first:%Z}"
