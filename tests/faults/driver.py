"""The command as a scheduler starts it, on a small data set, and what readers see of its runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

CHECKOUT = Path(__file__).parents[2]
SETTINGS = """
synthesize: {users: 120, items: 60, median_ratings: 15}
prepare: {buckets: 8}
features: {rank: 4, rounds: 5}
users_per_wave: 30
train:
  max_failed_share: 0.1
  learners: [{name: linear, params: {C: 0.1}}, {name: curved, params: {C: 10, kernel: rbf}}]
aggregate: {items: 10}
recommend: {learner: curved, top: 3, bottom: 1}
spark: {spark.master: "local[2]", spark.sql.shuffle.partitions: 2, spark.driver.memory: 1g}
"""
TABLES = ("ratings", "users", "items", "blocks", "item_counts", "item_features", "models",
          "metrics", "summary", "comparison", "roc", "bounds", "rankings", "aggregate",
          "majorities", "final_item_features", "final_models", "recommendations")  # fmt: skip
# what comes after the features
LATER = ("train", "evaluate", "rank", "aggregate", "refit", "recommend", "report")
LATER_TABLES = (*TABLES[TABLES.index("models") :], "final_feature_files", "report")
# no command of these takes longer, whatever breaks, on a machine ten times too busy
LONGEST = 900.0

Tables = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it said on stderr."""

    code: int
    said: str

    @property
    def last_line(self) -> str:
        return self.said.strip().splitlines()[-1]


class Driver:
    """A store, and commands on it in processes of their own."""

    def __init__(self, folder: Path, store: Path | None = None) -> None:
        self.folder = folder
        self.store = store or folder / "store"
        self.config = folder / "small.yaml"
        self.config.write_text(f"store: {self.store}\n{SETTINGS}")

    def start(
        self,
        run_id: str,
        *sets: str,
        command: str = "pipeline",
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """Start the command, this checkout's code, as the head of a process group."""
        own = {"PYTHONPATH": str(CHECKOUT), **(environment or {})}
        return subprocess.Popen(
            [sys.executable, "-m", "spark_rank", command, "--config", str(self.config),
             "--set", f"run_id={run_id}", *sets],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True, cwd=self.folder, env={**os.environ, **own},
        )  # fmt: skip

    def outcome(self, run_id: str, *sets: str, **how: Any) -> Outcome:
        """Run the command to its end."""
        process = self.start(run_id, *sets, **how)
        try:
            _, said = process.communicate(timeout=LONGEST)
        finally:
            end(process)
        return Outcome(process.returncode, said)

    def finish(self, run_id: str, *sets: str, **how: Any) -> str:
        """Run the command, which has to succeed; return what it said."""
        found = self.outcome(run_id, *sets, **how)
        assert found.code == 0, found.said
        return found.said

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

    def run(self, run_id: str) -> Path:
        return self.store / "runs" / f"run_id={run_id}"

    def copy_before_train(self, other: Driver) -> None:
        """Copy the undisturbed run of another store, as it was before `train`."""
        run = self.run("undisturbed")
        shutil.copytree(other.run("undisturbed"), run)
        for stage in LATER:
            (run / "manifest" / f"{stage}.json").unlink()
        for table in LATER_TABLES:
            shutil.rmtree(run / table)

    def tables(self, run_id: str) -> Tables:
        """Return every table that a reader who knows no manifest can see."""
        root = self.run(run_id)
        return {name: rows(root / name) for name in TABLES if (root / name).exists()}


def end(process: subprocess.Popen[str]) -> None:
    """Kill a command with its JVM and its workers, if it is still there."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    # also of one that ended by itself, just after its time was up
    if process.stderr is not None and not process.stderr.closed:
        process.communicate()


def rows(folder: Path, columns: str = "* exclude (run_id)") -> list[tuple[Any, ...]]:
    """Return a table's rows in an order that does not depend on its files."""
    found = duckdb.sql(f"select {columns} from '{folder}/**/*.parquet'")
    return sorted(found.fetchall(), key=repr)
