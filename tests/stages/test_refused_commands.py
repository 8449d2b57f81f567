"""A command that is refused changes nothing of a finished run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_rank.cli import main

SETTINGS = """
synthesize: {users: 40, items: 30, median_ratings: 10}
prepare: {buckets: 2}
features: {rank: 2, rounds: 2}
train: {learners: [{name: linear, learner: mprank, params: {C: 1}}]}
aggregate: {items: 5}
recommend: {in_pipeline: false}
"""
TUNED = "train.learners=[{name: tuned, learner: mprank, grid: {C: [0.1, 1]}}]"

Command = Callable[..., int]


@pytest.fixture(scope="module")
def command(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Return a function that runs a command on the run `bug`, which is finished."""
    folder = tmp_path_factory.mktemp("refused")
    path = folder / "small.yaml"
    path.write_text(f"store: {folder / 'store'}\nrun_id: bug\n{SETTINGS}")

    def start(name: str, *sets: str, more: tuple[str, ...] = ()) -> int:
        chosen = ["--set", *sets] if sets else []
        return main([*name.split(), "--config", str(path), *chosen, *more])

    assert start("pipeline") == 0
    start.__dict__["run"] = folder / "store/runs/run_id=bug"
    return start


def everything(command: Command) -> dict[str, bytes | None]:
    """Return every file's bytes and every directory of the run, hidden ones too."""
    run: Path = command.__dict__["run"]
    return {
        str(path.relative_to(run)): path.read_bytes() if path.is_file() else None
        for path in sorted(run.rglob("*"))
    }


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        ("pipeline", [TUNED], "has finished 'train' with other settings (learners was"),
        ("tune", [TUNED], "has finished 'train' with other settings (learners was"),
        ("pipeline", ["previous=yesterday"], "previous: there is no run 'yesterday'"),
        ("pipeline", ["aggregate.items=6"], "has finished 'aggregate' with other settings"),
        ("pipeline", ["seed=1"], "has finished 'synthesize' with seed 0, not 1"),
    ],
)
def test_a_refused_command_changes_nothing(
    command: Command, capsys: pytest.CaptureFixture[str], name: str, changed: list[str], said: str
) -> None:
    before = everything(command)
    assert command(name, *changed) == 2
    assert said in capsys.readouterr().err
    assert everything(command) == before
    assert command("runs verify") == 0
    assert command("pipeline") == 0
    assert everything(command) == before


@pytest.mark.parametrize("changed", ["previous=nothing", "features.kept_from=nothing"])
def test_a_run_that_names_none_is_refused_before_its_first_stage(
    command: Command, capsys: pytest.CaptureFixture[str], changed: str
) -> None:
    assert command("pipeline", "run_id=new", changed) == 2
    assert "run 'nothing' in" in capsys.readouterr().err
    run: Path = command.__dict__["run"].parent / "run_id=new"
    assert [path for path in run.rglob("*") if path.is_file()] == []
