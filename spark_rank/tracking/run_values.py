"""What MLflow is told of a run, as names and values that MLflow takes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from spark_rank.config import Config, shown
from spark_rank.redaction import redact
from spark_rank.users.user_groups import ALL

Records = Mapping[str, Mapping[str, Any]]

_LONGEST_NAME = 250
_LONGEST_VALUE = 6000
_ODD = re.compile(r"[^A-Za-z0-9_.\- ]")


def parameters(config: Config) -> dict[str, str]:
    """Return every key of the configuration, dotted, with its value as text; secrets are hidden."""
    tree = shown(config)
    of_spark = tree.pop("spark")  # these have their full names
    found = {**dict(_leaves(tree, "")), **of_spark}
    names = mlflow_names(found)
    return {names[key]: _shortened(redact(_as_text(value))) for key, value in found.items()}


def metrics(summary: pa.Table, records: Records) -> dict[str, float]:
    """Return means by metric, learner and group, rows by table, seconds by stage."""
    found = _means(summary)
    for stage, record in records.items():
        found[f"seconds.{stage}"] = float(record["seconds"])
        found |= {f"rows.{table}": float(rows) for table, rows in record["tables"].items()}
    names = mlflow_names(sorted(found))
    return {names[name]: value for name, value in found.items() if math.isfinite(value)}


def mlflow_names(names: Iterable[str]) -> dict[str, str]:
    """Return a name that MLflow takes for each; different ones stay different."""
    given: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        own = plain = _ODD.sub("_", name)[:_LONGEST_NAME]
        number = 1
        while own in taken:
            number += 1
            own = f"{plain[: _LONGEST_NAME - 8]}_{number}"
        taken.add(own)
        given[name] = own
    return given


def began_and_ended(records: Records) -> tuple[int, int] | None:
    """Return when the first stage began and the last one ended, in ms; None without stages."""
    if not records:
        return None
    begins = {name: _milliseconds(record["started"]) for name, record in records.items()}
    ends = [begins[name] + int(1000 * records[name]["seconds"]) for name in records]
    return min(begins.values()), max(ends)


def _means(summary: pa.Table) -> dict[str, float]:
    found = {}
    for row in summary.to_pylist():
        # the last group has no end: 300+
        group = "" if row["user_group"] == ALL else "." + row["user_group"].replace("+", "_up")
        for column, kind in (("mean", ""), ("pooled", "_all_ratings")):
            if row.get(column) is not None:
                name = f"{row['metric']}{kind}.{row['learner']}{group}"
                found[name] = float(row[column])
    return found


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Return what has no parts of its own; entries of a list of sections are numbered from 0."""
    if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        value = {str(place): entry for place, entry in enumerate(value)}
    if isinstance(value, dict) and value:
        for name, own in value.items():
            yield from _leaves(own, f"{key}.{name}".lstrip("."))
    else:
        yield key, value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _milliseconds(moment: str) -> int:
    return int(1000 * datetime.fromisoformat(moment).timestamp())
