"""Chooses which runs to delete: old ones that no other run needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from spark_rank.store.catalogue import FOREIGN, RUNNING, RunState
from spark_rank.store.containment import refuse_links
from spark_rank.store.lease import Lease, held
from spark_rank.store.run_records import RunRecords


@dataclass(frozen=True)
class Choice:
    """Whether a run is deleted, and why."""

    run_id: str
    goes: bool
    reason: str
    size: int


def choose(
    states: Sequence[RunState], keep: int | None, older_than_days: float | None, now: datetime
) -> list[Choice]:
    """Decide for every run whether to delete it; `states` has the latest first.

    A run is deleted only if both limits allow it.
    """
    kept: dict[str, str] = {}
    for position, state in enumerate(states):
        reason = _own_reason(state, position, keep, older_than_days, now)
        if reason is not None:
            kept[state.run_id] = reason
    by_id = {state.run_id: state for state in states}
    waiting = list(kept)
    while waiting:
        user = by_id[waiting.pop()]
        is_known = user.needs is not None
        for needed in sorted(_possibly_needed(user, states) - kept.keys()):
            kept[needed] = f"run {user.run_id} {'needs' if is_known else 'may need'} it"
            waiting.append(needed)
    return [Choice(s.run_id, s.run_id not in kept, kept.get(s.run_id, s.state), s.size)
            for s in states]  # fmt: skip


def _possibly_needed(user: RunState, states: Sequence[RunState]) -> set[str]:
    """Return the runs that a run needs; if that is unknown, all runs that began before it."""
    if user.needs is not None:
        return {state.run_id for state in states if state.run_id in user.needs}
    began = user.started
    return {state.run_id for state in states if state.state != FOREIGN
            and (began is None or state.started is None or state.started <= began)}  # fmt: skip


def _own_reason(
    state: RunState, position: int, keep: int | None, older_than_days: float | None, now: datetime
) -> str | None:
    if state.promoted:
        return "promoted"
    if state.state == FOREIGN:
        return f"not a run ({state.detail})"
    if state.state == RUNNING:
        return f"still running ({state.detail})"
    if keep is not None and position < keep:
        return f"one of the latest {keep}"
    if older_than_days is not None:
        if state.started is None:
            return "its age is unknown"
        if datetime.fromisoformat(state.started) > now - timedelta(days=older_than_days):
            return f"not {older_than_days:g} days old"
    return None


def delete(run: RunRecords) -> None:
    """Delete a run that no process works on; the manifest first, so that readers see no run."""
    refuse_links(run.root)
    with held(Lease(run.files, run.root, run.run_id)):
        run.files.delete(run.path("manifest"))
        for name in run.files.names(run.root):
            if not name.startswith("_lease"):
                run.files.delete(run.path(name))
    run.files.delete(run.root)
