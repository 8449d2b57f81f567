"""A table in waves: whoever comes after a kill makes what is missing, and nothing is made twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.errors import RunHeldError
from spark_rank.events import process_log
from spark_rank.session.filesystem import Filesystem
from spark_rank.stages.runner import run_stage
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.store.waves import Wave, plan_waves, write_in_waves
from spark_rank.tables.contracts import USERS

PLAN = [(0, 1), (2,), (3, 4)]
EXPECTED = [(f"u{number}", number) for number in range(50)]

MakeConfig = Callable[..., Config]


class Killed(BaseException):
    """Ends everything at once, like a process that is no more."""


@given(
    st.integers(0, 10**6), st.integers(1, 300), st.integers(1, 10**6), st.integers(1, 64)
)  # fmt: skip
def test_every_bucket_is_in_one_wave(
    users: int, buckets: int, users_per_wave: int, cores: int
) -> None:
    plan = plan_waves(users, buckets, users_per_wave, cores)
    assert [bucket for wave in plan for bucket in wave] == list(range(buckets))
    assert len(plan) <= max(1, -(-users // users_per_wave))
    assert len(plan) == 1 or min(map(len, plan)) >= cores
    sizes = [len(wave) for wave in plan]
    assert max(sizes) - min(sizes) <= 1


def test_small_runs_are_one_wave_and_netflix_is_eight() -> None:
    assert len(plan_waves(6_040, 16, 60_000, 2)) == 1
    assert len(plan_waves(480_189, 64, 60_000, 4)) == 9


class Table:
    """A stage that writes fifty users in three waves, and counts what it makes."""

    def __init__(self, partition_by: tuple[str, ...] = ()) -> None:
        self.made: Counter[int] = Counter()
        self.before: Callable[[Wave], None] = lambda wave: None
        self.partition_by = partition_by
        self.isolated: list[int] = []
        self.stage = Stage("waving", self.run, settings=lambda config: None)

    def run(self, config: Config, spark: SparkSession, run: Run) -> StageResult:
        users = spark.range(50).select(
            F.concat(F.lit("u"), "id").alias("user_id"), F.col("id").cast("int").alias("user")
        )

        def part(wave: Wave) -> DataFrame:
            self.before(wave)
            self.made[wave.number] += 1
            return users.where((F.col("user") % 5).isin(*wave.buckets)).coalesce(1)

        def isolating(wave: Wave) -> DataFrame:
            self.isolated.append(wave.number)
            return users.where((F.col("user") % 5).isin(*wave.buckets)).coalesce(1)

        waves = write_in_waves(run, USERS, PLAN, part, users=12, isolating=isolating)
        assert run.written(USERS).count() == 50
        return StageResult("waved", {"users": sum(wave.rows for wave in waves)})


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return Run(spark, str(tmp_path / "store"), "r1")


def users(run: Run) -> list[tuple[Any, ...]]:
    """Return what anybody reads who knows nothing of records."""
    folder = run.path("users").removeprefix("file:")
    return sorted(
        duckdb.sql(f"select user_id, user from '{folder}/*.parquet'").fetchall(),
        key=lambda row: int(row[1]),
    )


def assert_complete_or_absent(run: Run) -> None:
    if run.files.exists(run.path("users")):
        assert users(run) == EXPECTED


def saved_waves(run: Run) -> set[int]:
    folder = Path(run.path("_drafts/waving").removeprefix("file:"))
    return {int(note.stem) for note in folder.glob("waves-*/users/0*.json")}


def assert_finished(run: Run, table: Table, config: Config) -> None:
    record = run_stage(table.stage, config, run.spark, run)
    assert users(run) == EXPECTED
    assert record["tables"] == {"users": 50}
    names = {f"users/{name}" for name in run.files.names(run.path("users"))}
    assert record["files"].keys() == {name for name in names if name.endswith(".parquet")}
    assert run.files.names(run.path("_drafts")) == []


def test_a_wave_that_fails_does_not_undo_the_others(run: Run, make_config: MakeConfig) -> None:
    table, config = Table(), make_config()

    def broken(wave: Wave) -> None:
        if wave.number == 2:
            raise RuntimeError("no more memory")

    table.before = broken
    with pytest.raises(RuntimeError, match="no more memory"):
        run_stage(table.stage, config, run.spark, run)
    assert not run.files.exists(run.path("users"))
    done = dict(table.made)
    assert set(done) <= {0, 1}
    table.before = lambda wave: None
    assert_finished(run, table, config)
    assert table.made[2] == 1
    # waves were under way together: of those that began, the ones that ended are not made again
    assert all(times <= 2 for times in table.made.values())


def test_a_wave_that_workers_died_of_is_made_by_who_isolates(
    run: Run, make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    table, config = Table(), make_config()

    def deadly(wave: Wave) -> None:
        if wave.number == 1:
            raise PySparkException("Python worker exited unexpectedly (crashed)")

    table.before = deadly
    assert_finished(run, table, config)
    assert (table.made, table.isolated) == ({0: 1, 2: 1}, [1])
    assert "a Python worker died; computing wave 2 of 3 again" in capsys.readouterr().err


def test_saved_waves_are_not_made_again(
    run: Run, make_config: MakeConfig, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(process_log(), "form", "json")
    table, config = Table(), make_config()
    with dying_at(run, "seal"), pytest.raises(Killed):
        run_stage(table.stage, config, run.spark, run)
    assert table.made == {0: 1, 1: 1, 2: 1}
    # of one wave a byte is gone, and another's note was never written
    folder = Path(run.path("_drafts/waving").removeprefix("file:"))
    (waves,) = folder.glob("waves-*/users")
    next(waves.glob("00000-*/*.parquet")).write_bytes(b"PAR1")
    (waves / "00002.json").unlink()
    assert_finished(run, table, config)
    assert table.made == {0: 2, 1: 1, 2: 2}
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    (there,) = [line for line in told if line["event"] == "waves_there"]
    assert there["message"] == "1 of 3 waves are done already"
    assert (there["stage"], there["saved"], there["waves"]) == ("waving", 1, 3)


def test_a_saved_wave_that_lost_its_content_is_made_again(
    run: Run, make_config: MakeConfig
) -> None:
    table, config = Table(), make_config()
    with dying_at(run, "seal"), pytest.raises(Killed):
        run_stage(table.stage, config, run.spark, run)
    folder = Path(run.path("_drafts/waving").removeprefix("file:"))
    (waves,) = folder.glob("waves-*/users")
    lose_content(next(waves.glob("00000-*/*.parquet")))
    lose_content(waves / "00001.json")
    assert_finished(run, table, config)
    assert table.made == {0: 2, 1: 2, 2: 1}


@pytest.mark.parametrize("lost", ["waves-*/users/00002-*/*.parquet", "sealed-*.json"])
def test_a_sealed_stage_that_lost_content_is_not_published(
    run: Run, make_config: MakeConfig, lost: str
) -> None:
    table, config = Table(), make_config()
    with dying_at(run, "publish"), pytest.raises(Killed):
        run_stage(table.stage, config, run.spark, run)
    folder = Path(run.path("_drafts/waving").removeprefix("file:"))
    lose_content(next(folder.glob(lost)))
    assert_finished(run, table, config)
    assert table.made == {0: 1, 1: 1, 2: 2 if lost.endswith("parquet") else 1}


def lose_content(path: Path) -> None:
    """Leave a file its size alone, as a machine does that was lost before its disk had it."""
    path.write_bytes(bytes(path.stat().st_size))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


@contextmanager
def dying_at(run: Run, name: str) -> Iterator[None]:
    """Kill the process at the door of a step of the draft."""

    def die(*arguments: Any, **more: Any) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"spark_rank.store.drafts.Draft.{name}", die)
        yield


CHANGES = ("write_text", "create_text", "move", "delete")


@contextmanager
def dying_after(changes: int) -> Iterator[Counter[str]]:
    """Kill the process at a change of the store, before or after it is made."""
    seen: Counter[str] = Counter()

    def dying(name: str, change: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Filesystem, *arguments: Any) -> Any:
            seen["all"] += 1
            if seen["all"] > changes:
                raise Killed
            return change(self, *arguments)

        return wrapped

    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGES:
            patch.setattr(Filesystem, name, dying(name, getattr(Filesystem, name)))
        yield seen


@pytest.mark.slow
def test_killed_at_any_change_of_the_store_it_goes_on(
    spark: SparkSession, make_config: MakeConfig, tmp_path: Path
) -> None:
    config, changes, survived = make_config(), 0, False
    found_saved: set[int] = set()
    while not survived:
        run, table = Run(spark, str(tmp_path / "store"), f"r{changes}"), Table()
        with dying_after(changes):
            try:
                run_stage(table.stage, config, spark, run)
                survived = True
            except Killed:
                assert_complete_or_absent(run)
                assert (run.record("waving") is None) or users(run) == EXPECTED
        saved = saved_waves(run)
        assert_finished(run, table, config)
        assert all(table.made[number] == 1 for number in saved)
        found_saved |= saved
        changes += 1
    assert changes > 10
    assert found_saved == {0, 1, 2}


def test_who_lost_the_run_publishes_nothing(run: Run, make_config: MakeConfig) -> None:
    class Lost:
        token = "abc"

        def check(self) -> None:
            raise RunHeldError("taken over")

    run.lease = Lost()  # type: ignore[assignment]
    with pytest.raises(RunHeldError, match="taken over"):
        run_stage(Table().stage, make_config(), run.spark, run)
    assert not run.files.exists(run.path("users"))
    assert run.records() == {}
    with pytest.raises(RunHeldError, match="taken over"):
        run.write_record("waving", {})


def test_a_stage_that_another_process_has_finished_is_left_alone(run: Run) -> None:
    run.write_record("first", {"message": "by the other"})
    with pytest.raises(RunHeldError, match="another process has finished 'first'"):
        run.write_record("first", {"message": "by this one"})
    text = run.files.read_text(run.path("manifest/first.json"))
    assert json.loads(text)["message"] == "by the other"
