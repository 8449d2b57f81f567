"""Stages run once, refuse to contradict themselves, and publish only what is complete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.errors import ConfigError, ContractError
from spark_rank.records.data import SynthesizeFacts
from spark_rank.stages.runner import run_stage, working_on
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import ITEMS, METRICS, USERS


class Counted:
    """A stage that counts how often it really ran."""

    def __init__(
        self, name: str = "first", needs: tuple[str, ...] = (), inputs: Any = None
    ) -> None:
        self.times = 0
        self.inputs = inputs
        self.fail = False
        self.stage = Stage(
            name,
            self.run,
            settings=lambda config: config.prepare,
            needs=lambda config: needs,
            inputs=lambda config, run: self.inputs,
        )

    def run(self, config: Config, spark: SparkSession, run: Run) -> StageResult:
        self.times += 1
        if self.fail:
            raise RuntimeError("broke")
        rows = run.write(USERS, spark.createDataFrame([("a", 0)], "user_id string, user int"))
        return StageResult("one user", {"users": rows}, SynthesizeFacts(path="there"))


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return Run(spark, str(tmp_path / "store"), "r1")


MakeConfig = Callable[..., Config]


def test_a_finished_stage_is_not_run_again(
    spark: SparkSession, run: Run, make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    stage, config = Counted(), make_config()
    record = run_stage(stage.stage, config, spark, run)
    assert run_stage(stage.stage, config, spark, run) == record
    assert stage.times == 1
    assert "already done: one user" in capsys.readouterr().err
    assert record["tables"] == {"users": 1}
    assert record["facts"] == {"path": "there"}
    assert {"fingerprint", "seconds", "started", "versions", "seed", "settings"} <= record.keys()


def test_another_configuration_is_refused_and_named(
    spark: SparkSession, run: Run, make_config: MakeConfig
) -> None:
    stage = Counted()
    run_stage(stage.stage, make_config(), spark, run)
    with pytest.raises(ConfigError, match=r"train_share was 0.5, is 0.7.*--set run_id=NAME"):
        run_stage(stage.stage, make_config("prepare.train_share=0.7"), spark, run)
    with pytest.raises(ConfigError, match="seed 0, not 1"):
        run_stage(stage.stage, make_config("seed=1"), spark, run)
    stage.inputs = "changed file"
    with pytest.raises(ConfigError, match="other input"):
        run_stage(stage.stage, make_config(), spark, run)
    assert stage.times == 1


def test_a_stage_that_follows_its_inputs_is_made_anew_with_them_alone(
    spark: SparkSession, run: Run, make_config: MakeConfig
) -> None:
    follower, config = Counted(), make_config()
    stage = replace(follower.stage, follows_inputs=True)
    for inputs, times in ((None, 1), (None, 1), ("new", 2), ("new", 2)):
        follower.inputs = inputs
        run_stage(stage, config, spark, run)
        assert follower.times == times
    follower.inputs = "newer"
    with pytest.raises(ConfigError, match="train_share was 0.5, is 0.7"):
        run_stage(stage, make_config("prepare.train_share=0.7"), spark, run)
    with pytest.raises(ConfigError, match="seed 0, not 1"):
        run_stage(stage, make_config("seed=1"), spark, run)
    assert follower.times == 2


def test_settings_of_other_stages_do_not_matter(
    spark: SparkSession, run: Run, make_config: MakeConfig
) -> None:
    stage = Counted()
    run_stage(stage.stage, make_config(), spark, run)
    run_stage(stage.stage, make_config("train.min_ratings=9"), spark, run)
    assert stage.times == 1


def test_a_failed_stage_is_not_recorded_and_runs_again(
    spark: SparkSession, run: Run, make_config: MakeConfig
) -> None:
    stage, config = Counted(), make_config()
    stage.fail = True
    with pytest.raises(RuntimeError):
        run_stage(stage.stage, config, spark, run)
    assert run.record("first") is None
    stage.fail = False
    run_stage(stage.stage, config, spark, run)
    assert stage.times == 2


def test_a_stage_needs_what_comes_before(
    spark: SparkSession, run: Run, make_config: MakeConfig
) -> None:
    first, second = Counted("first"), Counted("second", needs=("first",))
    with pytest.raises(ConfigError, match="'second' needs 'first'.*run `spark-rank first` first"):
        run_stage(second.stage, make_config(), spark, run)
    run_stage(first.stage, make_config(), spark, run)
    run_stage(second.stage, make_config(), spark, run)
    assert second.times == 1


def test_readers_trust_only_what_is_recorded(
    spark: SparkSession, run: Run, make_config: MakeConfig
) -> None:
    items = ITEMS.apply(spark.createDataFrame([("i", 0)], "item_id string, item int"))
    items.write.parquet(run.path("items"))
    with pytest.raises(ConfigError, match="no finished table 'items'"):
        run.read(ITEMS)
    run_stage(Counted().stage, make_config(), spark, run)
    assert run.read(USERS).count() == 1
    with pytest.raises(ConfigError, match="no finished table 'metrics'"):
        run.read(METRICS)


def test_a_table_that_drifted_is_refused_on_read(
    spark: SparkSession, run: Run, make_config: MakeConfig
) -> None:
    run_stage(Counted().stage, make_config(), spark, run)
    drifted = spark.createDataFrame([("a", 0)], "user_id string, user bigint")
    drifted.write.mode("overwrite").parquet(run.path("users"))
    with pytest.raises(ContractError, match="column 'user' is bigint"):
        run.read(USERS)


def test_a_table_that_lost_rows_is_refused(
    spark: SparkSession, run: Run, make_config: MakeConfig
) -> None:
    run_stage(Counted().stage, make_config(), spark, run)
    lost = USERS.apply(spark.createDataFrame([], "user_id string, user int"))
    lost.write.mode("overwrite").parquet(run.path("users"))
    with pytest.raises(ContractError, match="holds 0 rows, the manifest says 1: start a new run"):
        run.read(USERS)
    run.files.delete(run.path("users"))
    with pytest.raises(ContractError, match="lists this table, but it is gone"):
        run.read(USERS)


def test_a_table_of_another_version_is_refused(
    spark: SparkSession, run: Run, make_config: MakeConfig
) -> None:
    run_stage(Counted().stage, make_config(), spark, run)
    frame = spark.createDataFrame([("a", 0, 99)], "user_id string, user int, schema_version int")
    frame.write.mode("overwrite").parquet(run.path("users"))
    with pytest.raises(ContractError, match="holds version 99, this package reads version 1"):
        run.read(USERS)


@pytest.mark.parametrize("text", ["{}", '{"fingerprint": 1}'])
def test_a_record_with_something_missing_is_named(
    spark: SparkSession, run: Run, make_config: MakeConfig, text: str
) -> None:
    run.files.write_text(run.path("manifest/first.json"), text)
    with pytest.raises(ContractError, match=r"first\.json: not a valid stage record \(it has no"):
        run_stage(Counted().stage, make_config(), spark, run)


def test_a_record_damaged_on_disk_is_named(
    spark: SparkSession, run: Run, make_config: MakeConfig
) -> None:
    run_stage(Counted().stage, make_config(), spark, run)
    path = Path(run.path("manifest/first.json").removeprefix("file:"))
    path.write_text(path.read_text()[:100])
    with pytest.raises(ContractError, match=r"first\.json: not a valid stage record"):
        run_stage(Counted().stage, make_config(), spark, run)


@pytest.mark.parametrize("store", ["nosuch://x/y", "s3a://bucket/x"])
def test_a_store_that_no_file_system_serves_is_one_clear_line(
    spark: SparkSession, store: str
) -> None:
    with pytest.raises(ConfigError, match="no file system serves it") as caught:
        Run(spark, store, "r")
    assert "\n" not in str(caught.value)


def test_a_broken_record_is_named(spark: SparkSession, run: Run, make_config: MakeConfig) -> None:
    run_stage(Counted().stage, make_config(), spark, run)
    run.files.write_text(run.path("manifest/first.json"), "{")
    with pytest.raises(ContractError, match=r"first\.json: not a valid stage record"):
        run.record("first")


@pytest.mark.parametrize("run_id", ["..", "../x", "a/b", ".", "", "a\nb", "é"])
def test_the_name_of_a_run_leads_nowhere_else(
    spark: SparkSession, tmp_path: Path, run_id: str
) -> None:
    with pytest.raises(ConfigError, match="letters, digits"):
        Run(spark, str(tmp_path / "store"), run_id)


def test_a_link_out_of_the_store_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    outside, runs = tmp_path / "outside", tmp_path / "real store" / "runs"
    for folder in (outside, runs / "run_id=here"):
        folder.mkdir(parents=True)
    (runs / "run_id=away").symlink_to(outside)
    (runs / "run_id=again").symlink_to(runs / "run_id=here")
    (tmp_path / "store").symlink_to(tmp_path / "real store")
    for store in ("store", "real store"):
        with pytest.raises(ConfigError, match="a link that leads out of the store, to .*outside"):
            Run(spark, str(tmp_path / store), "away")
        with pytest.raises(ConfigError, match="is a link to .*run_id=here: remove it, or name"):
            Run(spark, str(tmp_path / store), "again")
        for run_id in ("here", "new"):
            Run(spark, str(tmp_path / store), run_id)


@pytest.mark.parametrize(
    "place",
    ["_drafts", "_drafts/first", "_drafts/first/attempt", "_drafts/first/attempt/users/bucket=0",
     "manifest", "_lease", "run_metrics", "users", "users/part-0.parquet"],
)  # fmt: skip
def test_a_link_inside_a_run_is_refused_and_nothing_behind_it_is_touched(
    spark: SparkSession, run: Run, make_config: MakeConfig, tmp_path: Path, place: str
) -> None:
    outside = tmp_path / "outside"
    (outside / "precious").mkdir(parents=True)
    kept = [outside / "note", outside / "precious" / "file"]
    for path in kept:
        path.write_text("mine")
    link = Path(run.path(place).removeprefix("file:"))
    link.parent.mkdir(parents=True)
    link.symlink_to(kept[0] if link.suffix else outside)
    with pytest.raises(ConfigError, match=f"{place} is a link to .*outside"), working_on(run):
        run_stage(Counted().stage, make_config(), spark, run)
    if place.startswith("_drafts"):
        with pytest.raises(ConfigError, match=f"{place} is a link to .*outside"):
            run_stage(Counted().stage, make_config(), spark, run)
    assert sorted(path for path in outside.rglob("*") if path.is_file()) == kept


def test_files_there_and_back(run: Run, tmp_path: Path) -> None:
    path = run.path("some/note.txt")
    assert not run.files.exists(path)
    run.files.write_text(path, "erste Fassung ä")
    run.files.write_text(path, "second")
    assert run.files.read_text(path) == "second"
    assert run.files.head(path, 3) == b"sec"
    assert run.files.head(path, 99) == b"second"
    local = tmp_path / "file.bin"
    local.write_bytes(b"\0\1")
    run.files.upload(local, run.path("some/file.bin"))
    (found, note) = run.files.glob(run.path("some"))
    assert (found.path, found.size) == (run.path("some/file.bin"), 2)
    assert run.files.glob(run.path("some/*.txt")) == [note]
    assert run.files.glob(run.path("nothing")) == []
    run.files.delete(run.path("some"))
    assert not run.files.exists(path)
