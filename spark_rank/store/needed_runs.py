"""Which runs a run is made with: noted when work on it begins, long before a record tells of it.

A run that was killed in its first stage needs them as well: the same command goes on with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from spark_rank.config import Config
from spark_rank.records.facts import read_facts
from spark_rank.records.models import LearnedSince
from spark_rank.store.run_records import RunRecords
from spark_rank.store.self_checked import checked_text, read_checked

FILE = "_needed_runs.json"
# stands for the run that is promoted when work begins
LATEST = "latest"
# nobody has asked for the latest run yet; other than None, for there may be no such run
UNDECIDED = ""
_ROOT = re.compile(r".*/runs/run_id=([^/]+)/?")


def note_needed_runs(run: RunRecords, config: Config) -> None:
    """Note which runs the configuration names, beside those that earlier commands named."""
    named = {config.previous, config.input.dictionaries_from, config.features.kept_from}
    told = _told(run)
    before = None if told is None else frozenset(told["runs"])
    now = run_ids(named - {LATEST}) | (before or frozenset())
    if now != before:
        _write(run, {**(told or {}), "runs": sorted(now)})


def noted_runs(run: RunRecords) -> frozenset[str] | None:
    """Return the runs that were named when work began; None if nothing readable was noted."""
    told = _told(run)
    if told is None:
        return None
    latest = told.get("latest")
    return frozenset(told["runs"]) | ({latest} if latest else frozenset())


def needs_of_complete(run: RunRecords, records: dict[str, dict[str, Any]]) -> frozenset[str]:
    """Return the runs that a complete run still needs: the latest of its time is none of them.

    Else every night would keep the one before, and nothing could ever be deleted.
    """
    told = _told(run) or {"runs": []}
    return frozenset(told["runs"]) | (recorded_runs(records, run.run_id) - {told.get("latest")})


def note_latest(run: RunRecords, latest: str | None) -> None:
    """Note which run was the latest when work began, or that there was none."""
    _write(run, {**(_told(run) or {"runs": []}), "latest": latest})


def noted_latest(run: RunRecords) -> str | None:
    """Return the run that was the latest when work began; None: there was none."""
    told = _told(run) or {}
    latest: str | None = told.get("latest", UNDECIDED)
    return latest


def _told(run: RunRecords) -> dict[str, Any] | None:
    try:
        return read_checked(run.files.read_text(run.path(FILE)))
    except (OSError, UnicodeDecodeError):
        return None


def _write(run: RunRecords, told: dict[str, Any]) -> None:
    run.files.write_text(run.path(FILE), checked_text(told))


def recorded_runs(records: dict[str, dict[str, Any]], run_id: str) -> frozenset[str]:
    """Return the runs that finished stages were made with: a repeated command reads them again."""
    trained = records.get("train")
    previous = None if trained is None else read_facts(LearnedSince, trained, run_id).previous
    return run_ids({
        (records.get("ingest") or {}).get("settings", {}).get("dictionaries_from"),
        None if previous is None else previous.run,
        (records.get("features") or {}).get("settings", {}).get("kept_from"),
    })  # fmt: skip


def run_ids(named: Iterable[str | None]) -> frozenset[str]:
    """Return the ids of runs that are named by id or by directory."""
    names = [name for name in named if name is not None]
    roots = [_ROOT.fullmatch(name) for name in names]
    return frozenset(match[1] if match else name for name, match in zip(names, roots, strict=True))
