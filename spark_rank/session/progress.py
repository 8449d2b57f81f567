"""Shows progress: a line when a stage begins and ends, and how far it is in between."""

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
    """Tasks of the Spark jobs that run now: all, finished, and the rows that they have read.

    `rows` counts only tasks that write files: rows of tasks that only shuffle would count twice.
    `written` is the number of finished tasks that write files.
    """

    total: int = 0
    done: int = 0
    rows: int = 0
    written: int = 0


@dataclass(frozen=True)
class Users:
    """How many users a stage processes: all, done before, under way.

    Every row that is read is a user; where rows are something else, `a_task` is users per task.
    """

    total: int
    before: int = 0
    under_way: int = 0
    a_task: float | None = None

    def read_by(self, tasks: Tasks) -> int:
        """Return the number of users in finished tasks."""
        return tasks.rows if self.a_task is None else round(tasks.written * self.a_task)


@dataclass(frozen=True)
class Advance:
    """How far a stage is; its rate is this command's users by the seconds since the first one."""

    seconds: float
    tasks: Tasks
    users: Users | None = None
    users_done: int = 0
    users_here: int = 0
    users_seconds: float = 0.0

    @property
    def rate(self) -> float | None:
        """Return users a second; None before the first ones are done."""
        is_known = self.users_here > 0 and self.users_seconds > 0.0
        return self.users_here / self.users_seconds if is_known else None

    @property
    def share(self) -> float | None:
        """Return the share of users that are done; without users, the share of running tasks."""
        if self.users is not None and self.users.total:
            return min(1.0, self.users_done / self.users.total)
        return self.tasks.done / self.tasks.total if self.tasks.total else None

    @property
    def seconds_left(self) -> float | None:
        """Return the remaining seconds at the rate so far; None where users are not counted."""
        if self.users is None or self.rate is None:
            return None
        return max(0, self.users.total - self.users_done) / self.rate

    def text(self) -> str:
        """Return the progress as a line of text."""
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
        """Return the progress as the fields of an event."""
        fields: dict[str, Any] = {"seconds": round(self.seconds, 1)}
        fields |= {"tasks_done": self.tasks.done, "tasks": self.tasks.total}
        if self.users is not None:
            fields |= {"users_done": self.users_done, "users": self.users.total}
        if self.rate is not None and self.seconds_left is not None:
            fields["users_per_second"] = round(self.rate, 1)
            fields["seconds_left"] = round(self.seconds_left, 1)
        return fields


def duration(seconds: float) -> str:
    """Return a time span in seconds, minutes or hours, as suits its length."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class Progress:
    """Follows the Spark jobs of one stage and writes to `log`, by default the process's own."""

    def __init__(self, spark: SparkSession, stage: str, log: EventLog | None = None) -> None:
        self._tracker = _Tracker(spark)
        self._stage = stage
        self._log = log or process_log()
        self._done = threading.Event()
        # so that lines do not mix, and none is drawn after the closing line
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
        """Write the stage's closing line; nothing is drawn after it."""
        self._stop()
        self._log.emit(event, message, stage=self._stage, **fields)

    def begin(self, users: Users) -> None:
        """Count users from here on."""
        if self._users is None:
            self._users_started, self._users_at_start = time.monotonic(), users.before
        self._users = users
        self._most_done = users.before

    def part_done(self, users: int) -> None:
        """Count this many of the users under way as done: the jobs that read them have ended."""
        with self._drawing:
            if self._users is not None:
                users = min(users, self._users.under_way)
                self._users = replace(
                    self._users,
                    before=self._users.before + users,
                    under_way=self._users.under_way - users,
                )

    def advance(self) -> Advance:
        """Return how far the stage is; it never goes back."""
        # users before tasks, so that a part that ends in between is not counted twice
        users = self._users
        tasks = self._tracker.tasks()
        if users is None:
            return Advance(self.seconds(), tasks)
        # rows that later jobs read, such as the table that was written, are not users
        done = users.before + min(users.under_way, users.read_by(tasks))
        # Spark drops a part's tasks before `part_done` is called, and those of failed parts too
        self._most_done = done = max(done, self._most_done)
        here = done - self._users_at_start
        since = time.monotonic() - self._users_started
        return Advance(self.seconds(), tasks, users, done, here, since)

    def _follow(self) -> None:
        last_line = 0.0
        pause = _TERMINAL_INTERVAL if self._log.draws else _FIRST_LINE
        while not self._done.wait(pause):
            try:
                now = self.advance()
            except (Py4JError, OSError):
                return  # the JVM is gone: the code that waits for the result reports it
            with self._drawing:
                if self._done.is_set() or not (now.tasks.total or now.users):
                    continue
                if self._log.draws:
                    self._log.draw(now.text(), stage=self._stage)
                else:
                    fields = now.fields()
                    self._log.emit("progress", now.text(), stage=self._stage, **fields)
                    last_line = self.seconds()
            if not self._log.draws:
                pause = min(_RAREST_LINE, max(_FIRST_LINE, last_line * _LINE_SHARE))

    def _stop(self) -> None:
        with self._drawing:
            self._done.set()
            if self._log.draws:
                self._log.draw("", stage=self._stage)


_current: ContextVar[Progress | None] = ContextVar("progress", default=None)


class _Tracker:
    """Reads the tasks of the running Spark stages from Spark's status store."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._store = context._jsc.sc().statusStore()

    def tasks(self) -> Tasks:
        stages = self._store.activeStages()
        running = [stages.apply(i) for i in range(stages.size())]
        return Tasks(
            sum(stage.numTasks() for stage in running),
            sum(stage.numCompleteTasks() for stage in running),
            sum(stage.inputRecords() + stage.shuffleReadRecords() for stage in running
                if _writes(stage)),
            sum(stage.numCompleteTasks() for stage in running if _writes(stage)),
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
    """Let the running stage's progress count users: by rows, or `a_task` users per task.

    `before` users were done by an earlier command. Yields a function to call, from any thread,
    with the number of users of a part that is done.
    """
    progress = _current.get()
    if progress is None:
        yield lambda done: None
        return
    progress.begin(Users(users, before, users - before, a_task))
    yield progress.part_done
    progress.part_done(users)
