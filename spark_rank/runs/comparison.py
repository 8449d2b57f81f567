"""Two runs side by side: what was set differently, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_rank.runs.catalogue import Records

Row = dict[str, Any]


def compare(first: Records, second: Records) -> dict[str, list[Row]]:
    """Return settings, versions, row counts and metric means that differ or can be compared."""
    return {
        "settings": _differences(_settings(first), _settings(second)),
        "versions": _differences(_versions(first), _versions(second)),
        "rows": _both(_rows(first), _rows(second)),
        "means": _both(_means(first), _means(second)),
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


def _means(records: Records) -> Row:
    means = (records.get("evaluate") or {}).get("facts", {}).get("means", {})
    return {f"{learner}: {metric}": value for learner, by_metric in means.items()
            for metric, value in by_metric.items()}  # fmt: skip


def _differences(first: Row, second: Row) -> list[Row]:
    return [row for row in _both(first, second) if row["first"] != row["second"]]


def _both(first: Row, second: Row) -> list[Row]:
    return [{"name": name, "first": first.get(name), "second": second.get(name)}
            for name in sorted(first.keys() | second.keys())]  # fmt: skip
