"""Notes which earlier runs a run uses, when work on it begins and before any stage has a record.

A run that is killed in its first stage needs these runs too: the same command goes on with them.
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
# the latest run is not looked up yet; None means that there was none
UNDECIDED = ""
_ROOT = re.compile(r".*/runs/run_id=([^/]+)/?")


def note_needed_runs(run: RunRecords, config: Config) -> None:
    """Note the runs that the configuration names, with those that earlier commands named."""
    named = {config.previous, config.input.dictionaries_from, config.features.kept_from}
    note = _read(run)
    before = None if note is None else frozenset(note["runs"])
    now = run_ids(named - {LATEST}) | (before or frozenset())
    if now != before:
        _write(run, {**(note or {}), "runs": sorted(now)})


def noted_runs(run: RunRecords) -> frozenset[str] | None:
    """Return the runs that were named when work began; None without a readable note."""
    note = _read(run)
    if note is None:
        return None
    latest = note.get("latest")
    return frozenset(note["runs"]) | ({latest} if latest else frozenset())


def needs_of_complete(run: RunRecords, records: dict[str, dict[str, Any]]) -> frozenset[str]:
    """Return the runs that a complete run still needs, without what `latest` was when it began.

    Otherwise every nightly run would keep the one before, and no run could ever be deleted.
    """
    note = _read(run) or {"runs": []}
    return frozenset(note["runs"]) | (recorded_runs(records, run.run_id) - {note.get("latest")})


def note_latest(run: RunRecords, latest: str | None) -> None:
    """Note which run was the latest when work began, or that there was none."""
    _write(run, {**(_read(run) or {"runs": []}), "latest": latest})


def noted_latest(run: RunRecords) -> str | None:
    """Return the latest run when work began; None if there was none, UNDECIDED if not noted."""
    note = _read(run) or {}
    latest: str | None = note.get("latest", UNDECIDED)
    return latest


def _read(run: RunRecords) -> dict[str, Any] | None:
    try:
        return read_checked(run.files.read_text(run.path(FILE)))
    except (OSError, UnicodeDecodeError):
        return None


def _write(run: RunRecords, note: dict[str, Any]) -> None:
    run.files.write_text(run.path(FILE), checked_text(note))


def recorded_runs(records: dict[str, dict[str, Any]], run_id: str) -> frozenset[str]:
    """Return the runs that finished stages used: a repeated command reads them again."""
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
