"""Says what is going on: a line when a stage begins and ends, and how far it is in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spark_rank.events import EventLog, process_log
from spark_rank.wording import count_of

_TERMINAL_INTERVAL = 0.3
# lines of a log come after ten seconds, later every tenth of the time so far, at least each minute
_FIRST_LINE, _RAREST_LINE, _LINE_SHARE = 10.0, 60.0, 0.1


@dataclass(frozen=True)
class Tasks:
    """Tasks of the Spark jobs that run now: all, finished, and rows that finished ones read.

    Rows are those of tasks that write files: what others only bring together would count twice.
    `written` are the finished ones among these tasks.
    """

    total: int = 0
    done: int = 0
    rows: int = 0
    written: int = 0


@dataclass(frozen=True)
class Users:
    """How many users a stage goes over: all, done before, under way.

    Every row that is read is a user; where rows are something else, a task has so many.
    """

    total: int
    before: int = 0
    under_way: int = 0
    a_task: float | None = None

    def read_by(self, tasks: Tasks) -> int:
        """Return the users of the tasks that have finished."""
        return tasks.rows if self.a_task is None else round(tasks.written * self.a_task)


@dataclass(frozen=True)
class Advance:
    """How far a stage is: the users of this command over the seconds since it met the first."""

    seconds: float
    tasks: Tasks
    users: Users | None = None
    users_done: int = 0
    users_here: int = 0
    users_seconds: float = 0.0

    @property
    def rate(self) -> float | None:
        """Return users a second; None before the first ones are done."""
        known = self.users_here > 0 and self.users_seconds > 0.0
        return self.users_here / self.users_seconds if known else None

    @property
    def share(self) -> float | None:
        """Return the share of the users that is done, else of the tasks that run now."""
        if self.users is not None and self.users.total:
            return min(1.0, self.users_done / self.users.total)
        return self.tasks.done / self.tasks.total if self.tasks.total else None

    @property
    def seconds_left(self) -> float | None:
        """Return how long it takes at the rate so far; known only where users are counted."""
        if self.users is None or self.rate is None:
            return None
        return max(0, self.users.total - self.users_done) / self.rate

    def text(self) -> str:
        """Return it in words."""
        words = []
        if self.users is not None and self.share is not None:
            words.append(
                f"{self.share:.0%}, {self.users_done:,} of {count_of(self.users.total, 'user')}"
            )
        elif self.tasks.total:
            words.append(f"{self.tasks.done}/{self.tasks.total} tasks")
        if self.rate is not None:
            words.append(f"{self.rate:,.0f} users/s")
        words.append(f"{self.seconds:.0f} s")
        if self.seconds_left is not None:
            words.append(f"{duration(self.seconds_left)} left")
        return ", ".join(words)

    def fields(self) -> dict[str, Any]:
        """Return it as the fields of an event."""
        found: dict[str, Any] = {"seconds": round(self.seconds, 1)}
        found |= {"tasks_done": self.tasks.done, "tasks": self.tasks.total}
        if self.users is not None:
            found |= {"users_done": self.users_done, "users": self.users.total}
        if self.rate is not None and self.seconds_left is not None:
            found["users_per_second"] = round(self.rate, 1)
            found["seconds_left"] = round(self.seconds_left, 1)
        return found


def duration(seconds: float) -> str:
    """Return a time span as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class Progress:
    """Follows the Spark jobs of one stage and tells `log` (the process's own by default)."""

    def __init__(self, spark: SparkSession, stage: str, log: EventLog | None = None) -> None:
        self._tracker = _Tracker(spark)
        self._stage = stage
        self._log = log or process_log()
        self._done = threading.Event()
        # a line is drawn whole, and none after the closing one
        self._drawing = threading.Lock()
        self._thread = threading.Thread(target=self._follow, name="progress", daemon=True)
        self._started = time.monotonic()
        self._users: Users | None = None
        self._users_started = self._started
        self._users_at_start = 0
        self._most_done = 0

    def __enter__(self) -> Self:
        if self._log.draws:
            self._log.draw("...", stage=self._stage)
        else:
            self._log.emit("started", "...", stage=self._stage)
        self._token = _current.set(self)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current.reset(self._token)
        self._stop()
        self._thread.join(timeout=5.0)

    def seconds(self) -> float:
        """Return the time since the stage began."""
        return time.monotonic() - self._started

    def finish(self, message: str, event: str = "finished", **fields: Any) -> None:
        """Tell the stage's closing line; from then on nothing is drawn."""
        self._stop()
        self._log.emit(event, message, stage=self._stage, **fields)

    def begin(self, users: Users) -> None:
        """Count users from here on."""
        if self._users is None:
            self._users_started, self._users_at_start = time.monotonic(), users.before
        self._users = users
        self._most_done = users.before

    def part_done(self, users: int) -> None:
        """Take so many of the users under way as done: the jobs that read them have ended."""
        with self._drawing:
            if self._users is not None:
                users = min(users, self._users.under_way)
                self._users = replace(
                    self._users,
                    before=self._users.before + users,
                    under_way=self._users.under_way - users,
                )

    def advance(self) -> Advance:
        """Return how far the stage is: never less far than it was."""
        # in this order, so that a part that ends meanwhile is not counted twice
        users = self._users
        tasks = self._tracker.tasks()
        if users is None:
            return Advance(self.seconds(), tasks)
        # what is counted after the users' own pass, their table for one, must not count as users
        done = users.before + min(users.under_way, users.read_by(tasks))
        # a part's tasks are gone before it is told as done, and those of a part that failed too
        self._most_done = done = max(done, self._most_done)
        here = done - self._users_at_start
        since = time.monotonic() - self._users_started
        return Advance(self.seconds(), tasks, users, done, here, since)

    def _follow(self) -> None:
        told = 0.0
        pause = _TERMINAL_INTERVAL if self._log.draws else _FIRST_LINE
        while not self._done.wait(pause):
            try:
                now = self.advance()
            except (Py4JError, OSError):
                return  # the JVM is gone: whoever asked it for the result says so
            with self._drawing:
                if self._done.is_set() or not (now.tasks.total or now.users):
                    continue
                if self._log.draws:
                    self._log.draw(now.text(), stage=self._stage)
                else:
                    fields = now.fields()
                    self._log.emit("progress", now.text(), stage=self._stage, **fields)
                    told = self.seconds()
            if not self._log.draws:
                pause = min(_RAREST_LINE, max(_FIRST_LINE, told * _LINE_SHARE))

    def _stop(self) -> None:
        with self._drawing:
            self._done.set()
            if self._log.draws:
                self._log.draw("", stage=self._stage)


_current: ContextVar[Progress | None] = ContextVar("progress", default=None)


class _Tracker:
    """Asks Spark's own bookkeeping for the tasks of the stages that run now."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._store = context._jsc.sc().statusStore()

    def tasks(self) -> Tasks:
        stages = self._store.activeStages()
        found = [stages.apply(i) for i in range(stages.size())]
        return Tasks(
            sum(stage.numTasks() for stage in found),
            sum(stage.numCompleteTasks() for stage in found),
            sum(stage.inputRecords() + stage.shuffleReadRecords() for stage in found
                if _writes(stage)),
            sum(stage.numCompleteTasks() for stage in found if _writes(stage)),
        )  # fmt: skip


def _writes(stage: Any) -> bool:
    return int(stage.outputRecords()) > 0


@contextmanager
def job_description(spark: SparkSession, text: str) -> Iterator[None]:
    """Name the Spark jobs of a block of code, as the UI and the event log show them."""
    context = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(text)
    try:
        yield
    finally:
        context.setJobDescription(before)  # type: ignore[arg-type] # None takes it away


@contextmanager
def over_users(
    users: int, *, before: int = 0, a_task: float | None = None
) -> Iterator[Callable[[int], None]]:
    """Let the running stage's progress count users: by rows, or so many for every task.

    `before` of the users were done by an earlier command. Yields what to call, from any thread,
    with the number of users of a part that is done.
    """
    progress = _current.get()
    if progress is None:
        yield lambda done: None
        return
    progress.begin(Users(users, before, users - before, a_task))
    yield progress.part_done
    progress.part_done(users)
