"""Writes a table in waves of buckets, and saves each wave when it is done.

A wave is a group of buckets of users. Its rows go to a folder of its own; then they are counted,
the files' checksums are taken, and a note beside the folder says that the wave is complete. After
a process was killed, the next one makes only the waves without a note.

Two waves are under way at a time: when the last tasks of one wave leave cores free, tasks of the
next one use them, so that saving in waves costs almost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame

from spark_rank.events import emit
from spark_rank.records.models import WaveFacts
from spark_rank.session.crashes import isolating_on_crash
from spark_rank.session.progress import job_description, over_users
from spark_rank.store.drafts import Draft
from spark_rank.store.file_sizes import join_small_files
from spark_rank.store.footers import stored_rows
from spark_rank.store.inventory import (
    Inventory,
    as_record,
    from_record,
    is_unchanged,
    take_inventory,
)
from spark_rank.store.run import Run
from spark_rank.store.self_checked import checked_text
from spark_rank.tables.contract import Contract

_UNDER_WAY = 2
_PLAN = "plan.json"
Make = Callable[["Wave"], DataFrame]


@dataclass(frozen=True)
class Wave:
    """A group of buckets, by its number from 0."""

    number: int
    buckets: tuple[int, ...]


@dataclass(frozen=True)
class SavedWave:
    """A complete wave: its number of rows, its folder, and its files by path in that folder."""

    wave: Wave
    rows: int
    folder: str
    files: Inventory


def plan_waves(users: int, buckets: int, users_per_wave: int, cores: int) -> list[tuple[int, ...]]:
    """Return the buckets of every wave, in order.

    Every wave has at least as many buckets as there are cores, if there are enough buckets.
    """
    wanted = -(-users // users_per_wave)
    count = max(1, min(wanted, buckets // max(1, cores)))
    ends = [buckets * number // count for number in range(count + 1)]
    return [tuple(range(start, end)) for start, end in pairwise(ends)]


def write_in_waves(
    run: Run,
    contract: Contract,
    plan: Sequence[tuple[int, ...]],
    make: Make,
    users: int,
    partition_by: tuple[str, ...] = (),
    isolating: Make | None = None,
    users_a_task: float | None = None,
) -> list[SavedWave]:
    """Write a table of the stage in progress wave by wave; return all waves, in order.

    `make` returns a wave's rows. If Python workers die of a wave, `isolating` makes it instead.
    `plan` is used when the stage begins; a process that continues the stage follows the first plan.
    `users` is the number of all users, for the progress, which counts the rows that Spark reads.
    Where rows are not users, the progress counts `users_a_task` users per task.
    """
    draft = run.in_progress
    saver = _Saver(run, contract, make, isolating, partition_by)
    waves = _first_plan(draft, contract, plan)
    saved = {wave: done for wave in waves if (done := _saved(draft, contract, wave)) is not None}
    missing = [wave for wave in waves if wave not in saved]
    _remove_unsaved(draft, contract, saved.values())
    if saved and missing:
        text = f"{len(saved)} of {len(waves)} waves are done already"
        emit("waves_there", text, stage=draft.stage, saved=len(saved), waves=len(waves))
    sizes = _sizes(waves, users)
    before = sum(sizes[wave] for wave in saved)
    with over_users(users, before=before, a_task=users_a_task) as part_done:
        new = saver.save_all(missing, len(waves), lambda wave: part_done(sizes[wave]))
    saved |= dict(zip(missing, new, strict=True))
    in_order = [saved[wave] for wave in waves]
    draft.add_parts(contract.table, {wave.folder: wave.files for wave in in_order})
    return in_order


def _sizes(waves: Sequence[Wave], users: int) -> dict[Wave, int]:
    """Return about how many users each wave has; buckets of hashes are about equally large."""
    buckets = sum(len(wave.buckets) for wave in waves)
    return {wave: users * len(wave.buckets) // max(buckets, 1) for wave in waves}


def wave_facts(waves: Sequence[SavedWave]) -> tuple[WaveFacts, ...]:
    """Return, for the manifest, which files contain the users of which buckets."""
    return tuple(WaveFacts(saved.wave.buckets, tuple(sorted(saved.files))) for saved in waves)


@dataclass(frozen=True)
class _Saver:
    run: Run
    contract: Contract
    make: Make
    isolating: Make | None
    partition_by: tuple[str, ...]

    def save_all(
        self, waves: Sequence[Wave], of: int, done: Callable[[Wave], None]
    ) -> list[SavedWave]:
        """Save waves, some at a time, and call `done` for each; a failure ends the others."""
        context = self.run.spark.sparkContext
        tag = f"waves {self.run.in_progress.attempt}"
        with ThreadPoolExecutor(_UNDER_WAY, thread_name_prefix="wave") as threads:
            # these threads inherit this thread's settings of Spark, such as the scheduler's pool
            work = inheritable_thread_target(self.run.spark)(self._tagged)
            tasks: list[Future[SavedWave]] = [
                threads.submit(work, wave, of, tag, done) for wave in waves
            ]
            try:
                wait(tasks, return_when=FIRST_EXCEPTION)
                return [task.result() for task in tasks if task.done()]
            finally:
                for task in tasks:
                    task.cancel()
                if not all(task.done() for task in tasks):
                    context.cancelJobsWithTag(tag)

    def _tagged(self, wave: Wave, of: int, tag: str, done: Callable[[Wave], None]) -> SavedWave:
        context = self.run.spark.sparkContext
        context.addJobTag(tag)
        try:
            stage = self.run.in_progress.stage
            name = f"wave {wave.number + 1} of {of}"
            with job_description(self.run.spark, f"{self.run.run_id}: {stage}, {name}"):
                saved = self._save_isolating_on_crash(wave, stage, name)
            done(wave)
            return saved
        finally:
            context.removeJobTag(tag)

    def _save_isolating_on_crash(self, wave: Wave, stage: str, name: str) -> SavedWave:
        isolating = self.isolating
        if isolating is None:
            return self._save(wave, self.make)
        return isolating_on_crash(
            lambda isolate: (
                self._save(wave, isolating, "-isolated") if isolate else self._save(wave, self.make)
            ),
            stage,
            name,
        )

    def _save(self, wave: Wave, make: Make, suffix: str = "") -> SavedWave:
        draft = self.run.in_progress
        # a new folder name, because tasks of a failed job may still write to the old one
        name = f"{wave.number:05d}-{draft.attempt}{suffix}"
        folder = f"{draft.waves}/{self.contract.table}/{name}"
        self.contract.writer(make(wave)).partitionBy(*self.partition_by).parquet(folder)
        if not self.partition_by:
            join_small_files(self.run.spark, draft.files, folder)
        rows = stored_rows(draft.files, [folder])
        saved = SavedWave(wave, rows, folder, take_inventory(draft.files, folder))
        note = {
            "buckets": wave.buckets,
            "rows": saved.rows,
            "folder": name,
            "files": as_record(saved.files),
        }
        draft.check()
        draft.files.write_text(_note(draft, self.contract, wave.number), checked_text(note))
        return saved


def _first_plan(draft: Draft, contract: Contract, plan: Sequence[tuple[int, ...]]) -> list[Wave]:
    """Return the waves of the plan that the stage began with; that is `plan` if it is new."""
    path = f"{draft.waves}/{contract.table}/{_PLAN}"
    first = draft.read_note(path)
    if first is None:
        first = {"waves": plan}
        draft.check()
        draft.files.write_text(path, checked_text(first))
    return [Wave(number, tuple(buckets)) for number, buckets in enumerate(first["waves"])]


def _saved(draft: Draft, contract: Contract, wave: Wave) -> SavedWave | None:
    note = draft.read_note(_note(draft, contract, wave.number))
    if note is None or tuple(note["buckets"]) != wave.buckets:
        return None
    folder = f"{draft.waves}/{contract.table}/{note['folder']}"
    files = from_record(note["files"])
    if not is_unchanged(draft.files, folder, files):
        return None  # a wave whose files have changed is made again
    return SavedWave(wave, note["rows"], folder, files)


def _remove_unsaved(draft: Draft, contract: Contract, saved: Iterable[SavedWave]) -> None:
    """Remove incomplete waves of processes that were killed."""
    keep = {each.folder for each in saved}
    keep |= {_note(draft, contract, each.wave.number) for each in saved}
    parent = f"{draft.waves}/{contract.table}"
    for name in draft.files.names(parent):
        if f"{parent}/{name}" not in keep and name != _PLAN:
            draft.files.delete(f"{parent}/{name}")


def _note(draft: Draft, contract: Contract, number: int) -> str:
    return f"{draft.waves}/{contract.table}/{number:05d}.json"
