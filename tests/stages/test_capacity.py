"""The warning at a stage's start: told once, in words; none for a cluster that is large enough."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.planning.offer import Machine
from spark_rank.stages import capacity
from spark_rank.stages.capacity import warn_if_too_small
from spark_rank.stages.runner import run_stage
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from tests.records.counts import prepared_counts

SMALL, LARGE = Machine(2, 2.6e9), Machine(2, 24e9)
# what a stage with these counts left behind
COUNTED = prepared_counts(10**6, 10**4, 10**8, 10**4)


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(capacity, "_warned", set())
    return Run(spark, str(tmp_path), "r")


def on(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "this_machine", lambda: machine)


def nothing(name: str) -> Stage:
    return Stage(name, lambda *_: StageResult("done", facts=COUNTED), lambda config: config.train)


def test_a_machine_that_is_too_small_is_told_of_once(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on(SMALL, monkeypatch)
    run_stage(nothing("prepare"), Config(), run.spark, run)
    capsys.readouterr()
    run_stage(nothing("train"), Config(), run.spark, run)
    said = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert said == []  # prepare has said it of the same setting
    monkeypatch.setattr(capacity, "_warned", set())
    run_stage(nothing("evaluate"), Config(), run.spark, run)
    said = [line for line in capsys.readouterr().err.splitlines() if "beside the JVM" in line]
    assert len(said) == 1
    assert said[0].startswith("[evaluate: warning] evaluate needs about ")
    assert "2 Python workers of" in said[0]


def test_a_machine_that_is_large_enough_is_no_news(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on(LARGE, monkeypatch)
    for name in ("ingest", "prepare", "train", "evaluate"):
        run_stage(nothing(name), Config(), run.spark, run)
    assert "warning" not in capsys.readouterr().err


def test_nothing_is_said_of_what_is_not_known(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on(Machine(2, 1e6), monkeypatch)
    warn_if_too_small("report", Config(), run)
    warn_if_too_small("something else", Config(), run)
    assert capsys.readouterr().err == ""
    warn_if_too_small("train", Config(), run)  # the generated data set's sizes are known
    assert "train needs about" in capsys.readouterr().err


def test_it_asks_spark_for_no_job(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    on(SMALL, monkeypatch)
    context = run.spark.sparkContext
    context.setJobGroup("capacity", "no job is in it")
    try:
        warn_if_too_small("train", Config(), run)
        assert list(context.statusTracker().getJobIdsForGroup("capacity")) == []
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(name, None)  # type: ignore[arg-type]
