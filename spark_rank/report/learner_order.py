"""The order of learners: as configured, then ensembles, then the baselines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spark_rank.learners import BASELINES


def in_order(learners: Iterable[str]) -> list[tuple[str, bool]]:
    """Return every learner once, baselines last, each with whether it is a baseline."""
    names = dict.fromkeys(learners)
    ordered = [n for n in names if n not in BASELINES] + [b for b in BASELINES if b in names]
    return [(name, name in BASELINES) for name in ordered]


def configured_order(
    learners: Iterable[str], records: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return learners in the order of `train`'s settings, then the others, baselines last."""
    configured = [
        str(entry["name"] or entry["learner"])
        for entry in (records.get("train") or {}).get("settings", {}).get("learners", ())
    ]
    names = sorted(set(learners))
    first = [name for name in configured if name in names]
    return [name for name, _ in in_order([*first, *names])]
