"""Two runs side by side: the settings that differ, and the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_rank.learners import BASELINES
from spark_rank.metrics.meaning import Evidence
from spark_rank.records.facts import read_facts
from spark_rank.records.results import EvaluateFacts
from spark_rank.store.catalogue import Records

Row = dict[str, Any]
# by learner and metric: the mean, its number of users, and the reason if there is no mean
Means = dict[str, tuple[float | None, int | None, str | None]]


def compare(names: tuple[str, str], first: Records, second: Records) -> dict[str, list[Row]]:
    """Return the differences of two runs by their records, and their rows and means."""
    return {
        "settings": _differences(settings_of(first), settings_of(second)),
        "versions": _differences(_versions(first), _versions(second)),
        "rows": _both(_rows(first), _rows(second)),
        "means": _means_of_both(means_of(names[0], first), means_of(names[1], second)),
    }


def settings_of(records: Records) -> Row:
    """Return the settings of all stages under names like ``prepare: fold``."""
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


def _means_of_both(first: Means, second: Means) -> list[Row]:
    """Return the means with their numbers of users; None, with a reason, if there is no mean."""
    sides = {"first": first, "second": second}
    rows = []
    for name in sorted(sides["first"].keys() | sides["second"].keys()):
        row: Row = {"name": name}
        for side, means in sides.items():
            mean, users, reason = means.get(name, (None, None, None))
            row |= {side: mean, f"{side}_users": users, f"{side}_nothing_because": reason}
        rows.append(row)
    return rows


def means_of(run_id: str, records: Records) -> Means:
    """Return the means over users, and those over all ratings, by ``learner: metric``."""
    if "evaluate" not in records:
        return {}
    facts = read_facts(EvaluateFacts, records["evaluate"], run_id)
    evidence = Evidence(facts.means, facts.users, facts.status, BASELINES)
    means: Means = {
        f"{learner}: {metric}": (
            evidence.mean(learner, metric), evidence.count(learner, metric),
            evidence.nothing_because(learner, metric),
        )
        for learner, metrics in evidence.means.items()
        for metric in metrics
    }  # fmt: skip
    for learner, metrics in facts.pooled.items():
        for metric, value in metrics.items():
            reason = evidence.nothing_because(learner, metric)
            shown = value if reason is None else None
            means[f"{learner}: {metric} over all ratings"] = (shown, None, reason)
    return means


def _differences(first: Row, second: Row) -> list[Row]:
    return [row for row in _both(first, second) if row["first"] != row["second"]]


def _both(first: Row, second: Row) -> list[Row]:
    return [{"name": name, "first": first.get(name), "second": second.get(name)}
            for name in sorted(first.keys() | second.keys())]  # fmt: skip
