"""The metrics file of a stage, as JSON and for Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.stages.runner import run_stage
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.store.run_metrics import (
    is_intact,
    peak_memory,
    prometheus,
    stage_metrics,
    write_metrics,
)

SAMPLE = re.compile(r'[a-z_]+\{([a-z]+="(?:[^"\\\n]|\\.)*",?)+\} -?[0-9.e+-]+')
STATUS = {
    'a"b\\': {"learned": 5, "failed: numeric_failure": 2, "failed: odd": 1},
    "c": {"learned": 8},
}


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return Run(spark, str(tmp_path), "r")


def metrics_file(run: Run, stage: str, suffix: str = "json") -> str:
    return run.files.read_text(run.path(f"run_metrics/{stage}.{suffix}"))


def test_what_is_told_of_a_stage(spark: SparkSession) -> None:
    facts = {"status": STATUS, "failed_users": {"some": "examples"}}
    outcome = {"tables": {"models": 16}, "facts": facts, "users": 8}
    found = stage_metrics("r", "train", 4.0, outcome, spark)
    assert found["failed_users"] == {'a"b\\': {"numeric_failure": 2, "odd": 1}}
    assert (found["users"], found["users_per_second"], found["rows"]) == (8, 2.0, {"models": 16})
    assert (found["run"], found["stage"], found["status"]) == ("r", "train", "done")
    # what stages after train repeat of it is not counted twice
    later = stage_metrics("r", "evaluate", 4.0, {"facts": {"status": STATUS}}, spark)
    assert later["failed_users"] == {}
    assert later["users_per_second"] is None


def test_every_line_is_a_sample_that_prometheus_reads(spark: SparkSession) -> None:
    facts = {"status": STATUS, "failed_users": {"some": "examples"}}
    outcome = {"tables": {"models": 16}, "facts": facts, "users": 8}
    metrics = stage_metrics("r", "train", 4.0, outcome, spark)
    metrics["peak_memory_bytes"] = {"driver": {"jvm_heap": 7}}
    lines = prometheus(metrics).splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in samples), samples
    assert 'spark_rank_stage_success{stage="train"} 1' in samples
    assert 'spark_rank_stage_users_per_second{stage="train"} 2.0' in samples
    assert any(line.endswith('learner="a\\"b\\\\",reason="odd"} 1') for line in samples)
    # each name is described once, before its samples, and its samples stand together
    names = [line.split("{")[0] for line in samples]
    described = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert list(dict.fromkeys(names)) == described
    assert len(set(described)) == len(described)


def test_a_stage_leaves_its_metrics_and_a_failed_one_too(
    spark: SparkSession, run: Run, make_config: Callable[..., Config]
) -> None:
    fail = True

    def work(config: Config, spark: SparkSession, run: Run) -> StageResult:
        if fail:
            raise RuntimeError("hunter2")
        return StageResult("done", users=3)

    stage = Stage("some", work, settings=lambda config: None)
    with pytest.raises(RuntimeError):
        run_stage(stage, make_config(), spark, run)
    told = json.loads(metrics_file(run, "some"))
    assert (told["status"], told["error"], told["users"]) == ("failed", "RuntimeError", None)
    assert 'spark_rank_stage_success{stage="some"} 0' in metrics_file(run, "some", "prom")
    fail = False
    run_stage(stage, make_config(), spark, run)
    told = json.loads(metrics_file(run, "some"))
    assert (told["status"], told["error"], told["users"]) == ("done", None, 3)
    before = metrics_file(run, "some")
    run_stage(stage, make_config(), spark, run)  # is done already: nothing to measure
    assert metrics_file(run, "some") == before


def test_a_changed_byte_shows(run: Run, spark: SparkSession) -> None:
    write_metrics(run, stage_metrics("r", "some", 1.0, {"tables": {"models": 3}}, spark))
    for suffix in ("json", "prom"):
        text = metrics_file(run, "some", suffix)
        assert is_intact(text)
        for place in range(len(text)):
            for bit in (1, 32):
                other = chr(ord(text[place]) ^ bit)
                assert not is_intact(text[:place] + other + text[place + 1 :]), (place, bit)
        assert not is_intact(text[:-1])
    assert not is_intact("")


def test_a_store_that_takes_no_metrics_is_told_and_survived(
    spark: SparkSession, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs" / "run_id=r").mkdir(parents=True)
    (tmp_path / "runs" / "run_id=r" / "run_metrics").write_text("a file in the way")
    write_metrics(run, stage_metrics("r", "some", 1.0, {}, spark))
    assert "[some: warning]" in capsys.readouterr().err


def test_memory_is_that_of_this_process_tree(spark: SparkSession) -> None:
    found = peak_memory(spark)
    # nothing is known before the first heartbeat; then it is more than a bare JVM takes
    assert found is None or found["driver"]["jvm_process"] > 50_000_000
