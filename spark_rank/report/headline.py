"""What a run came to, in words: the first lines of its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from spark_rank.learners import BASELINES
from spark_rank.metrics.meaning import FEWEST_USERS, NOTHING_TO_ORDER, Evidence, enough_users
from spark_rank.report.comparisons import seen_from_learners
from spark_rank.report.numbers import shown

Row = Mapping[str, Any]
Records = Mapping[str, Mapping[str, Any]]

_METRIC, _RIVAL = "misranking", "item_offset"


def headline(found: Evidence, comparison: Sequence[Row]) -> list[str]:
    """Return how many pairs the first learner puts in the right order, beside the items' average.

    The learners of `found` are in the order of the report.
    """
    learners = [name for name in found.means if name not in BASELINES]
    if not learners:
        return ["Only the baselines were measured: no learner was trained."]
    telling = [name for name in learners if found.nothing_because(name) is None]
    if not telling:
        return [_nothing(learners[0], found.nothing_because(learners[0]) or "")]
    learner = telling[0]
    users, wrong = found.count(learner, _METRIC) or 0, found.mean(learner, _METRIC)
    if wrong is None or not enough_users(users):
        return [
            f"Too few users for a verdict: {users:,} with held-out items of different ratings; "
            f"{FEWEST_USERS} are the fewest that can tell a learner from chance."
        ]
    rival = found.mean(_RIVAL, _METRIC) if _RIVAL in found.means else None
    if rival is None or rival == 1.0:  # items without averages: this baseline is a constant
        return [_sentence(learner, wrong, None), _basis(users)]
    return [_sentence(learner, wrong, rival), _basis(users),
            *_difference(learner, found, comparison)]  # fmt: skip


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
        return "No user has held-out items with different ratings: there is no order to be right."
    return f"No verdict on {learner}: {reason}."


def _sentence(learner: str, wrong: float, rival: float | None) -> str:
    own, other = _shares(1.0 - wrong, None if rival is None else 1.0 - rival)
    beside = (
        "a random order would have 50 %"
        if rival is None
        else f"the average order of the items, the same for everybody, {other}"
    )
    return (
        f"{learner} correctly orders {own} of the pairs of items that a user has rated "
        f"differently; {beside}."
    )


def _shares(first: float, second: float | None) -> tuple[str, str]:
    """Return shares as whole percentages, with a digit more where they would look the same."""
    other = first if second is None else second
    alike = second is not None and round(100 * first) == round(100 * other)
    form = ".1f" if alike else ".0f"
    return f"{100 * first:{form}} %", f"{100 * other:{form}} %"


def _basis(users: int) -> str:
    return f"Measured on ratings held out from learning; the mean over {users:,} users."


def _difference(learner: str, found: Evidence, comparison: Sequence[Row]) -> list[str]:
    """Return how sure the difference is, in percentage points."""
    rows = [
        row for row in seen_from_learners(comparison, list(found.means))
        if (row["learner"], row["rival"], row["metric"]) == (learner, _RIVAL, _METRIC)
    ]  # fmt: skip
    if not rows or rows[0]["ci_low"] is None or not enough_users(rows[0]["users"]):
        return []
    row = rows[0]
    # the learner's gain is what it misranks less
    gain, low, high = (-100.0 * row[end] for end in ("difference", "ci_high", "ci_low"))
    points = f"{shown(gain, '+.1f')} percentage points, between {shown(low, '+.1f')} and "
    points += f"{shown(high, '+.1f')} by the interval"
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
