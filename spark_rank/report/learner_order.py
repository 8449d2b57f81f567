"""The order of learners: as they are configured, then ensembles, then the baselines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spark_rank.learners import BASELINES


def in_order(learners: Iterable[str]) -> list[tuple[str, bool]]:
    """Return the different learners as they come, baselines last, each with whether it is one."""
    names = dict.fromkeys(learners)
    ordered = [n for n in names if n not in BASELINES] + [b for b in BASELINES if b in names]
    return [(name, name in BASELINES) for name in ordered]


def configured_order(
    learners: Iterable[str], records: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return learners as `train` and `ensemble` have them by their records, baselines last."""
    configured = [
        str(entry["name"] or entry["learner"])
        for entry in (records.get("train") or {}).get("settings", {}).get("learners", ())
    ]
    names = sorted(set(learners))
    first = [name for name in configured if name in names]
    return [name for name, _ in in_order([*first, *names])]
