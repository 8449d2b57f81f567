"""A command in a process that has a Spark session uses it and leaves it as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_rank.cli import main
from spark_rank.session.session import spark_session

PARTITIONS = "spark.sql.shuffle.partitions"
BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


def test_a_command_leaves_the_session_of_its_process_as_it_was(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = spark.range(7)
    before = {row["key"]: row["value"] for row in spark.sql("SET").collect()}
    small = ["synthesize.users=20", "synthesize.items=10", "synthesize.median_ratings=5"]
    command = ["synthesize", "--set", f"store={tmp_path}", *small, "--spark", f"{PARTITIONS}=5"]
    assert main(command) == 0, capsys.readouterr().err
    assert (tmp_path / "runs/run_id=default/manifest/synthesize.json").exists()
    assert frame.count() == 7
    assert SparkSession.getActiveSession() is not None
    assert SparkSession.builder.getOrCreate().range(3).count() == 3
    assert {row["key"]: row["value"] for row in spark.sql("SET").collect()} == before
    assert "this process has a Spark session already" not in capsys.readouterr().err


def test_a_failed_command_leaves_it_too(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(7)
    assert main(["prepare", "--set", f"store={tmp_path}"]) == 2
    assert frame.count() == 7


def test_a_running_session_takes_the_settings_that_it_can(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {PARTITIONS: "5", "spark.master": spark.sparkContext.master}
    with spark_session("inner", settings) as inner:
        assert inner.conf.get(PARTITIONS) == "5"
        assert inner.conf.get(BATCH) == "1000"
        made = inner.createDataFrame([(1,)], "x int")
        assert made.sparkSession.conf.get(PARTITIONS) == "5"
    assert spark.conf.get(PARTITIONS) == "3"
    active = SparkSession.getActiveSession()
    assert active is not None
    assert active.conf.get(PARTITIONS) == "3"
    assert capsys.readouterr().err == ""


def test_one_line_names_what_a_running_session_cannot_take(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    configured = {
        PARTITIONS: "5",
        "spark.master": "local[7]",
        "spark.hadoop.fs.s3a.secret.key": "x",
    }
    with spark_session("inner", configured):
        pass
    (line,) = capsys.readouterr().err.splitlines()
    assert "spark.master=local[2] instead of local[7]" in line
    assert "spark.hadoop.fs.s3a.secret.key=its default instead of" in line
    assert "instead of x" not in line
    assert PARTITIONS not in line
