"""kill -9 of the driver at random moments: the same command goes on, and nothing shows it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

KILLS = 20
SETTINGS = """
synthesize: {users: 120, items: 60, median_ratings: 15}
prepare: {buckets: 8}
features: {rank: 4, rounds: 5}
users_per_wave: 30
train:
  learners: [{name: linear, params: {C: 0.1}}]
aggregate: {items: 10}
recommend: {top: 3, bottom: 1}
spark: {spark.master: "local[2]", spark.sql.shuffle.partitions: 2, spark.driver.memory: 1g}
"""
TABLES = ("ratings", "users", "items", "blocks", "item_features", "models", "metrics", "summary",
          "comparison", "roc", "bounds", "rankings", "aggregate", "majorities",
          "recommendations")  # fmt: skip


class Driver:
    """The command as a scheduler starts it, and what readers see of its runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "small.yaml"
        self.config.write_text(f"store: {folder / 'store'}\n{SETTINGS}")

    def start(self, run_id: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "spark_rank", "pipeline", "--config", str(self.config),
                   "--set", f"run_id={run_id}"]  # fmt: skip
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True, cwd=self.folder,
        )  # fmt: skip

    def finish(self, run_id: str) -> None:
        process = self.start(run_id)
        try:
            _, said = process.communicate(timeout=280)
        finally:
            end(process)
        assert process.returncode == 0, said

    def killed_after(self, run_id: str, seconds: float) -> bool:
        """Run the command and kill it and its JVM; return False if it had ended before."""
        process = self.start(run_id)
        try:
            _, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return True
        finally:
            end(process)
        assert process.returncode == 0, said
        return False

    def tables(self, run_id: str) -> dict[str, list[tuple[Any, ...]]]:
        """Return every table that a reader who knows no manifest can see."""
        root = self.folder / "store" / "runs" / f"run_id={run_id}"
        return {name: rows(root / name) for name in TABLES if (root / name).exists()}


def end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def rows(folder: Path) -> list[tuple[Any, ...]]:
    found = duckdb.sql(f"select * exclude (run_id) from '{folder}/**/*.parquet'")
    return sorted(found.fetchall(), key=repr)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_random_kills_leave_no_trace(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    begun = time.monotonic()
    driver.finish("undisturbed")
    longest = time.monotonic() - begun
    expected = driver.tables("undisturbed")
    assert expected.keys() == set(TABLES)
    draw = random.Random(8)
    kills = number = 0
    while kills < KILLS:
        run_id = f"disturbed-{number}"
        while kills < KILLS and driver.killed_after(run_id, draw.uniform(0.2, 0.8) * longest):
            kills += 1
            for name, seen in driver.tables(run_id).items():
                assert seen == expected[name], f"{name} of {run_id} is not whole after a kill"
        driver.finish(run_id)
        assert driver.tables(run_id) == expected, run_id
        number += 1
