"""Progress: how far a stage is, in words and fields, and when it says so."""

from __future__ import annotations

import io
import json
import threading
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_rank.events import EventLog
from spark_rank.session.progress import (
    Advance,
    Progress,
    Tasks,
    Users,
    duration,
    job_description,
    over_users,
)
from spark_rank.session.session import runtime_setting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_users_their_rate_and_the_time_left() -> None:
    now = Advance(65.0, Tasks(16, 4, 800), Users(3000, 500, 1000), 1300, 800, 40.0)
    assert now.text() == "43%, 1,300 of 3,000 users, 20 users/s, 65 s, 85 s left"
    assert now.fields() == {
        "seconds": 65.0, "tasks_done": 4, "tasks": 16, "users_done": 1300, "users": 3000,
        "users_per_second": 20.0, "seconds_left": 85.0,
    }  # fmt: skip


def test_before_the_first_user_nothing_is_guessed() -> None:
    # users of an earlier command say nothing of this one's rate
    now = Advance(3.0, Tasks(16), Users(3000, 500, 1000), 500, 0, 3.0)
    assert now.text() == "17%, 500 of 3,000 users, 3 s"
    assert "users_per_second" not in now.fields()


def test_without_users_there_are_tasks() -> None:
    assert Advance(12.4, Tasks(8, 3)).text() == "3/8 tasks, 12 s"
    assert Advance(12.4, Tasks(8, 3)).share == 3 / 8
    assert Advance(12.4, Tasks()).text() == "12 s"
    assert Advance(12.4, Tasks()).share is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"),
                           (5400, "1 h 30 min"), (90_000, "25 h 0 min")]
)  # fmt: skip
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


class FixedTracker:
    """Says what it was told."""

    def __init__(self, *found: Tasks) -> None:
        self.found = list(found)

    def tasks(self) -> Tasks:
        return self.found.pop(0) if len(self.found) > 1 else self.found[0]


def test_parts_add_up_and_what_follows_them_does_not_count(spark: SparkSession) -> None:
    with Progress(spark, "train", EventLog(stream=io.StringIO())) as progress:
        progress._tracker = FixedTracker(  # type: ignore[assignment]
            Tasks(4, 1, 30), Tasks(2, 0, 0), Tasks(4, 4, 999), Tasks(0)
        )
        with over_users(300, before=100) as part_done:
            assert progress.advance().users_done == 130
            part_done(80)  # its jobs have ended, and their rows are counted no more
            assert progress.advance().users_done == 180
            assert progress.advance().users_done == 300  # there are no more
        assert progress.advance().users_done == 300
        assert progress.advance().users_here == 200
        progress.finish("done")


def test_it_never_falls_back(spark: SparkSession) -> None:
    with Progress(spark, "train", EventLog(stream=io.StringIO())) as progress:
        # a part's job has ended, but nobody has said so yet; then a part is made again
        found = [Tasks(2, 1, 79), Tasks(), Tasks(2, 0, 0), Tasks(2, 1, 40), Tasks(2, 2, 90)]
        progress._tracker = FixedTracker(*found)  # type: ignore[assignment]
        with over_users(300) as part_done:
            assert [progress.advance().users_done for _ in found] == [79, 79, 79, 79, 90]
            part_done(60)
            assert progress.advance().users_done == 150
        with over_users(40):
            # other users: counted from the start
            assert progress.advance().users_done == 40
        progress.finish("done")


def test_users_who_are_counted_while_they_are_asked_for_count_once(spark: SparkSession) -> None:
    class LateTracker:
        """Answers as of a moment ago: meanwhile the part it tells of has been told as done."""

        def tasks(self) -> Tasks:
            part_done(50)
            return Tasks(2, 2, 50)

    with Progress(spark, "train", EventLog(stream=io.StringIO())) as progress:
        with over_users(300) as part_done:
            progress._tracker = LateTracker()  # type: ignore[assignment]
            assert progress.advance().users_done == 50
            progress._tracker = FixedTracker(Tasks())  # type: ignore[assignment]
        progress.finish("done")


def test_jobs_have_names(spark: SparkSession) -> None:
    context = spark.sparkContext
    with job_description(spark, "monday: train, wave 1 of 2"):
        spark.range(1).count()
    assert context.getLocalProperty("spark.job.description") is None
    store = context._jsc.sc().statusStore()
    descriptions = {store.job(job).description().get()
                    for job in context.statusTracker().getJobIdsForGroup(None)
                    if store.job(job).description().isDefined()}  # fmt: skip
    assert "monday: train, wave 1 of 2" in descriptions


@pytest.mark.parametrize("shuffled", [False, True])
def test_spark_tells_how_many_rows_finished_tasks_read(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, shuffled: bool
) -> None:
    """What users are counted by; in the middle of a job, so that it cannot be all of them.

    Tasks that only bring rows together, and those that count what was written, do not count.
    """
    path = str(tmp_path_factory.mktemp("rows") / "table")
    spark.range(0, 400, 1, 4).write.parquet(path)
    counted: list[int] = []
    log = EventLog(stream=io.StringIO())

    def slowly(batches: Any) -> Any:
        import time

        time.sleep(0.4)
        yield from batches

    with (
        Progress(spark, "train", log) as progress,
        over_users(400),
        runtime_setting(spark, "spark.sql.files.maxPartitionBytes", "1000"),
    ):
        rows = spark.read.parquet(path)
        frame = (rows.repartition(4) if shuffled else rows).mapInArrow(slowly, "id long")

        def write_and_count() -> None:
            frame.write.mode("overwrite").parquet(path + "2")
            spark.read.parquet(path + "2").count()

        job = threading.Thread(target=write_and_count)
        job.start()
        while job.is_alive():
            counted.append(progress.advance().users_done)
            job.join(0.02)
    assert {100, 200, 300} & set(counted)
    assert counted == sorted(counted)


def test_a_stage_says_that_it_begins_and_ends(spark: SparkSession) -> None:
    stream = io.StringIO()
    with Progress(spark, "train", EventLog(stream=stream)) as progress:
        spark.range(10).count()
        progress.finish("ten users")
    assert stream.getvalue().splitlines() == ["[train] ...", "[train] ten users"]
    assert progress.seconds() > 0.0


def test_json_lines_for_machines(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_rank.session.progress._FIRST_LINE", 0.01)
    stream = io.StringIO()
    with Progress(spark, "train", EventLog("json", stream)) as progress:
        progress._tracker = FixedTracker(Tasks(4, 1, 30))  # type: ignore[assignment]
        with over_users(60):
            while stream.getvalue().count("\n") < 3:
                progress._done.wait(0.01)
            progress.finish("done", users=60)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in (lines[0], lines[2], lines[-1])] == [
        "started", "progress", "finished",
    ]  # fmt: skip
    assert {"time", "level", "run", "stage", "event", "message"} <= lines[2].keys()
    assert (lines[2]["users_done"], lines[2]["users"], lines[2]["tasks"]) == (30, 60, 4)
    assert lines[-1]["users"] == 60


def test_a_terminal_shows_tasks_and_is_cleaned_up(spark: SparkSession) -> None:
    def slowly(_: Any) -> None:
        import time

        time.sleep(0.1)

    stream = Terminal()
    with Progress(spark, "train", EventLog(stream=stream)) as progress:
        spark.range(0, 40, 1, 8).foreach(slowly)
        progress.finish("done")
    text = stream.getvalue()
    assert "/8 tasks" in text
    # the task counts are wiped before the closing line, and none is drawn after it
    assert "\r\x1b[K[train] done\n" in text
    assert "tasks" not in text.split("[train] done")[1]


def test_nothing_is_drawn_after_the_closing_line(spark: SparkSession) -> None:
    class SlowTracker:
        """Answers only when the stage has said its last word."""

        def __init__(self) -> None:
            self.asked, self.closed = threading.Event(), threading.Event()

        def tasks(self) -> Tasks:
            self.asked.set()
            assert self.closed.wait(10.0)
            return Tasks(8, 3)

    stream, tracker = Terminal(), SlowTracker()
    with Progress(spark, "train", EventLog(stream=stream)) as progress:
        progress._tracker = tracker  # type: ignore[assignment]
        assert tracker.asked.wait(10.0)
        progress.finish("done")
        tracker.closed.set()
    assert "tasks" not in stream.getvalue()
    assert "[train] done\n" in stream.getvalue()
