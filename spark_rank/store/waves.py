"""Tables that are written in waves of buckets, each saved when it is done.

A wave is a group of buckets of users. Its rows go to a folder of its own; then they are counted,
the files' checksums are taken, and a note beside the folder says that it is complete. A process
that goes on after another was killed makes the waves without a note, and no other.

Two waves are under way at a time: when the last tasks of one leave cores free, the next one's
are waiting, so that saving in parts costs next to nothing.
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
    """A wave that is complete: its rows, and its files by path from its folder."""

    wave: Wave
    rows: int
    folder: str
    files: Inventory


def plan_waves(users: int, buckets: int, users_per_wave: int, cores: int) -> list[tuple[int, ...]]:
    """Return the buckets of every wave, in order.

    There are no more waves than leave every core a bucket in each.
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
    """Write a table of the stage in progress wave by wave; return them all, in order.

    `users` is how many there are in all, for the progress, which counts the rows that Spark reads;
    where these are not users, `users_a_task` of them are a task's.
    `plan` counts when the stage begins; whoever goes on follows the plan that it began with.
    A wave that Python workers have died of is made by `isolating`, if there is one.
    """
    draft = run.in_progress
    saver = _Saver(run, contract, make, isolating, partition_by)
    waves = _begun_plan(draft, contract, plan)
    saved = {wave: found for wave in waves if (found := _saved(draft, contract, wave)) is not None}
    missing = [wave for wave in waves if wave not in saved]
    _remove_unsaved(draft, contract, saved.values())
    if saved and missing:
        text = f"{len(saved)} of {len(waves)} waves are there already"
        emit("waves_there", text, stage=draft.stage, saved=len(saved), waves=len(waves))
    sizes = _sizes(waves, users)
    before = sum(sizes[wave] for wave in saved)
    with over_users(users, before=before, a_task=users_a_task) as part_done:
        made = saver.save_all(missing, len(waves), lambda wave: part_done(sizes[wave]))
    saved |= dict(zip(missing, made, strict=True))
    in_order = [saved[wave] for wave in waves]
    draft.add_parts(contract.table, {found.folder: found.files for found in in_order})
    return in_order


def _sizes(waves: Sequence[Wave], users: int) -> dict[Wave, int]:
    """Return about how many users each wave has: buckets are of hashes, and so much the same."""
    buckets = sum(len(wave.buckets) for wave in waves)
    return {wave: users * len(wave.buckets) // max(buckets, 1) for wave in waves}


def wave_facts(waves: Sequence[SavedWave]) -> tuple[WaveFacts, ...]:
    """Return, for the manifest, which files have the users of which buckets."""
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
        """Save waves, some at a time, and tell of each; the first that fails ends the others."""
        context = self.run.spark.sparkContext
        tag = f"waves {self.run.in_progress.attempt}"
        with ThreadPoolExecutor(_UNDER_WAY, thread_name_prefix="wave") as threads:
            # what the session knows of this thread, such as the scheduler's pool, counts there too
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
            lambda care: (
                self._save(wave, isolating, "-isolated") if care else self._save(wave, self.make)
            ),
            stage,
            name,
        )

    def _save(self, wave: Wave, make: Make, suffix: str = "") -> SavedWave:
        draft = self.run.in_progress
        # a name of its own: tasks of a job that failed may still be about to end
        own = f"{wave.number:05d}-{draft.attempt}{suffix}"
        folder = f"{draft.waves}/{self.contract.table}/{own}"
        self.contract.writer(make(wave)).partitionBy(*self.partition_by).parquet(folder)
        if not self.partition_by:
            join_small_files(self.run.spark, draft.files, folder)
        rows = stored_rows(draft.files, [folder])
        found = SavedWave(wave, rows, folder, take_inventory(draft.files, folder))
        note = {
            "buckets": wave.buckets,
            "rows": found.rows,
            "folder": own,
            "files": as_record(found.files),
        }
        draft.check()
        draft.files.write_text(_note(draft, self.contract, wave.number), checked_text(note))
        return found


def _begun_plan(draft: Draft, contract: Contract, plan: Sequence[tuple[int, ...]]) -> list[Wave]:
    path = f"{draft.waves}/{contract.table}/{_PLAN}"
    begun = draft.read_note(path)
    if begun is None:
        begun = {"waves": plan}
        draft.check()
        draft.files.write_text(path, checked_text(begun))
    return [Wave(number, tuple(buckets)) for number, buckets in enumerate(begun["waves"])]


def _saved(draft: Draft, contract: Contract, wave: Wave) -> SavedWave | None:
    note = draft.read_note(_note(draft, contract, wave.number))
    if note is None or tuple(note["buckets"]) != wave.buckets:
        return None
    folder = f"{draft.waves}/{contract.table}/{note['folder']}"
    files = from_record(note["files"])
    if not is_unchanged(draft.files, folder, files):
        return None  # what is not as it was saved is made anew
    return SavedWave(wave, note["rows"], folder, files)


def _remove_unsaved(draft: Draft, contract: Contract, saved: Iterable[SavedWave]) -> None:
    """Remove what processes that were killed in the middle of a wave have left."""
    keep = {found.folder for found in saved}
    keep |= {_note(draft, contract, found.wave.number) for found in saved}
    parent = f"{draft.waves}/{contract.table}"
    for name in draft.files.names(parent):
        if f"{parent}/{name}" not in keep and name != _PLAN:
            draft.files.delete(f"{parent}/{name}")


def _note(draft: Draft, contract: Contract, number: int) -> str:
    return f"{draft.waves}/{contract.table}/{number:05d}.json"
