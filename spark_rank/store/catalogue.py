"""Lists the runs of a store with their states."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from spark_rank.errors import ConfigError, ContractError
from spark_rank.records.facts import read_facts
from spark_rank.records.models import LearnedSince
from spark_rank.session.files import Files
from spark_rank.store.drafts import FOLDER as DRAFTS
from spark_rank.store.inventory import from_record
from spark_rank.store.lease import Lease
from spark_rank.store.needed_runs import needs_of_complete, noted_runs, recorded_runs
from spark_rank.store.pointer import promoted_run
from spark_rank.store.run_records import RunRecords
from spark_rank.tables.contracts import BLOCKS
from spark_rank.visible import visible

COMPLETE, INCOMPLETE, RUNNING, DAMAGED = "complete", "incomplete", "running", "damaged"
# not a run: a link or a file with the name of a run, or a name that no run can have
FOREIGN = "foreign"
# a run with these stages is complete; tune, rank, aggregate and recommend are optional
REQUIRED = ("ingest", "prepare", "features", "train", "evaluate", "report")
_FOLDER = re.compile(r"run_id=(.+)", re.DOTALL)

Records = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class RunState:
    """A run as the list shows it; `needs` are the runs that it was made with, None if unknown."""

    run_id: str
    state: str
    detail: str
    stages: tuple[str, ...] = ()
    users: int | None = None
    started: str | None = None
    size: int = 0
    promoted: bool = False
    needs: frozenset[str] | None = frozenset()


class Catalogue:
    """The runs of a store."""

    def __init__(self, files: Files, store: str) -> None:
        self.files = files
        self.store = store

    def run(self, run_id: str) -> RunRecords:
        """Return an existing run."""
        run = RunRecords(self.files, self.store, run_id)
        if not self.files.is_directory(run.root):
            raise ConfigError(
                f"no run {run_id!r} in {self.store}: `spark-rank runs list` shows the runs"
            )
        return run

    def states(self) -> list[RunState]:
        """Return all runs, the latest first."""
        names = self.files.names(self.files.qualified(f"{self.store.rstrip('/')}/runs"))
        ids = [match[1] for name in names if (match := _FOLDER.fullmatch(name))]
        promoted = promoted_run(self.files, self.store)
        states = [self._state_or_foreign(run_id, promoted) for run_id in ids]
        return sorted(states, key=lambda state: (state.started or "", state.run_id), reverse=True)

    def state(self, run_id: str, *, promoted: bool = False) -> RunState:
        """Return the state of one run; damage is part of the state and raises no error."""
        run = self.run(run_id)
        records, damages = readable_records(run)
        noted = noted_runs(run)
        if damages:
            state, detail = DAMAGED, next(iter(damages.values()))
            # a record that cannot be read may have named any run
            needs = None if noted is None else noted | recorded_runs(records, run_id)
        else:
            state, detail = self._condition(run, records)
            needs = (noted or frozenset()) | recorded_runs(records, run_id)
            if state == COMPLETE:
                needs = needs_of_complete(run, records)
        return RunState(
            run_id, state, detail, tuple(in_order(records)), users(records),
            min((record["started"] for record in records.values()), default=None),
            size(records.values()), promoted, needs,
        )  # fmt: skip

    def _state_or_foreign(self, run_id: str, promoted: str | None) -> RunState:
        """Return the state of a run, or FOREIGN for what is no run, so that the list goes on."""
        try:
            return self.state(run_id, promoted=run_id == promoted)
        except ConfigError as error:
            is_promoted = run_id == promoted  # then it may need any run
            return RunState(
                visible(run_id), FOREIGN, str(error), promoted=is_promoted,
                needs=None if is_promoted else frozenset(),
            )  # fmt: skip

    def _condition(self, run: RunRecords, records: Records) -> tuple[str, str]:
        lease = Lease(self.files, run.root, run.run_id)
        holder = lease.holder()
        if holder is not None and not lease.seems_over(holder):
            return RUNNING, str(holder)
        begun = self.files.names(run.path(DRAFTS))
        if begun:
            return INCOMPLETE, f"{', '.join(begun)} was interrupted"
        missing = [name for name in REQUIRED if name not in records]
        return (INCOMPLETE, f"without {', '.join(missing)}") if missing else (COMPLETE, "")


def readable_records(run: RunRecords) -> tuple[Records, dict[str, str]]:
    """Return the records that can be read, and what is wrong with the others, by stage."""
    records: Records = {}
    damages: dict[str, str] = {}
    for stage in run.recorded_stages():
        try:
            record = run.record(stage) or {}
            if stage == LearnedSince.stage:  # the list needs the run that it was made with
                read_facts(LearnedSince, record, run.run_id)
            records[stage] = record
        except ContractError as error:
            damages[stage] = str(error)
    return records, damages


def in_order(records: Records) -> list[str]:
    """Return the stages in the order in which they began."""
    return sorted(records, key=lambda name: (records[name]["started"], name))


def users(records: Records) -> int | None:
    """Return how many users a run has; None before `prepare`."""
    prepared = records.get("prepare")
    return None if prepared is None else prepared["tables"][BLOCKS.table]


def size(records: Iterable[dict[str, Any]]) -> int:
    """Return the bytes of all recorded files."""
    return sum(file.size for record in records for file in from_record(record["files"]).values())
