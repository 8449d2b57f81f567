"""experiment as a stage: partitions decide nothing, missing data is said, the page shows it all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, load_config
from spark_rank.engine.runner import run_stages
from spark_rank.engine.store import Run
from spark_rank.errors import ConfigError
from spark_rank.stages import experiment, experiment_report

TABLES = ("experiment_results", "experiment_summary", "experiment_claims")
Make = Callable[..., Config]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def configured(name: str, run_id: str = "one", **settings: object) -> Config:
        path = tmp_path / "one.yaml"
        path.write_text(f"experiment: {{name: {name}, settings: {settings}}}")
        return load_config(
            path,
            [f"store={tmp_path / 'store'}", f"experiment.data={tmp_path}", f"run_id={run_id}"],
        )

    return configured


def execute(config: Config, spark: SparkSession) -> Run:
    run = Run(spark, config.store, config.run_id)
    run_stages([experiment.STAGE, experiment_report.STAGE], config, spark, run)
    return run


def rows(run: Run, table: str) -> list[tuple]:
    files = f"{run.path(table).removeprefix('file:')}/*.parquet"
    return duckdb.sql(f"select * exclude (run_id) from read_parquet('{files}')").fetchall()


def page(run: Run) -> str:
    return Path(run.path("report/report.html").removeprefix("file:")).read_text()


def test_tasks_decide_nothing(
    spark: SparkSession, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"repeats": 5, "rounds": 40}
    many = execute(make("prank_synthetic", **settings), spark)
    monkeypatch.setattr(experiment, "_TASKS_PER_CORE", 0)
    single = execute(make("prank_synthetic", "two", **settings), spark)
    for table in TABLES:
        found = rows(many, table)
        assert found == rows(single, table)
        assert found
    assert "PRank on synthetic data" in page(many)
    assert "PRank ends below MCP" in page(many)
    before = many.record("experiment")
    assert execute(make("prank_synthetic", **settings), spark).record("experiment") == before
    with pytest.raises(ConfigError, match="settings.repeats was 5, is 6"):
        execute(make("prank_synthetic", repeats=6, rounds=40), spark)
