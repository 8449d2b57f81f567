"""Two runs side by side: what was set differently, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_rank.learners import BASELINES
from spark_rank.metrics.meaning import Evidence
from spark_rank.store.catalogue import Records

Row = dict[str, Any]


def compare(first: Records, second: Records) -> dict[str, list[Row]]:
    """Return settings, versions, row counts and metric means that differ or can be compared."""
    return {
        "settings": _differences(_settings(first), _settings(second)),
        "versions": _differences(_versions(first), _versions(second)),
        "rows": _both(_rows(first), _rows(second)),
        "means": _means_of_both(first, second),
    }


def _settings(records: Records) -> Row:
    flat: Row = {}
    for stage, record in records.items():
        flat[f"{stage}: seed"] = record["seed"]
        flat |= _flat(record["settings"], f"{stage}: ")
    return flat


def _flat(settings: Any, prefix: str) -> Row:
    if not isinstance(settings, Mapping):
        return {prefix.rstrip(":. "): settings}
    return {
        key: value for name, part in settings.items()
        for key, value in _flat(part, f"{prefix}{name}.").items()
    }  # fmt: skip


def _versions(records: Records) -> Row:
    return {f"{stage}: {name}": version for stage, record in records.items()
            for name, version in record["versions"].items()}  # fmt: skip


def _rows(records: Records) -> Row:
    return {table: rows for record in records.values() for table, rows in record["tables"].items()}


def _means_of_both(first: Records, second: Records) -> list[Row]:
    """Return the means with the numbers of users behind them; null with a reason for nothing."""
    sides = {"first": _means(first), "second": _means(second)}
    rows = []
    for name in sorted(sides["first"].keys() | sides["second"].keys()):
        row: Row = {"name": name}
        for side, means in sides.items():
            mean, users, nothing = means.get(name, (None, None, None))
            row |= {side: mean, f"{side}_users": users, f"{side}_nothing_because": nothing}
        rows.append(row)
    return rows


def _means(records: Records) -> dict[str, tuple[float | None, int | None, str | None]]:
    facts = (records.get("evaluate") or {}).get("facts")
    if facts is None:
        return {}
    found = Evidence.of_facts(facts, BASELINES)
    return {
        f"{learner}: {metric}": (
            found.mean(learner, metric), found.count(learner, metric),
            found.nothing_because(learner),
        )
        for learner, own in found.means.items()
        for metric in own
    }  # fmt: skip


def _differences(first: Row, second: Row) -> list[Row]:
    return [row for row in _both(first, second) if row["first"] != row["second"]]


def _both(first: Row, second: Row) -> list[Row]:
    return [{"name": name, "first": first.get(name), "second": second.get(name)}
            for name in sorted(first.keys() | second.keys())]  # fmt: skip
