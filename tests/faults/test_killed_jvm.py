"""The JVM is killed, or the whole command: one line, no folder left, and the command goes on."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
from pathlib import Path
from random import Random

import pytest

from tests.faults.driver import LONGEST, Driver, Tables, end
from tests.faults.test_takeovers import wait_for

# several commands, each with a bound of its own
pytestmark = pytest.mark.timeout(3000)
# of the JVM itself
FIRST_LINE = "WARNING: Using incubator modules: jdk.incubator.vector"


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def jvm_of(process: subprocess.Popen[str]) -> int:
    found = subprocess.run(
        ["ps", "-o", "pid=,comm=", "--ppid", str(process.pid)], capture_output=True, text=True,
        check=True,
    ).stdout.splitlines()  # fmt: skip
    return next(int(pid) for pid, name in map(str.split, found) if name == "java")


def without_progress(said: str) -> list[str]:
    lines = said.splitlines()
    return [line for line in lines if line != FIRST_LINE and not line.startswith("[")]


@pytest.mark.slow
@pytest.mark.fault(
    "the JVM is killed in the middle of `train`, as when memory runs out; then the whole command",
    "exit code 1 and one line: what died, in which stage, what to look at; the next start removes "
    "the temporary folders of what was killed, and finishes, tables as undisturbed",
)
def test_a_killed_jvm_is_told_in_one_line_and_the_same_command_goes_on(
    undisturbed: Driver, expected: Tables, temporary: Path
) -> None:
    run, own = undisturbed.run("no-jvm"), {"TMPDIR": str(temporary)}
    drafts = run / "_drafts" / "train"
    process = undisturbed.start("no-jvm", environment=own)
    try:
        wait_for(drafts, process)
        os.kill(jvm_of(process), signal.SIGKILL)
        _, said = process.communicate(timeout=LONGEST)
    finally:
        end(process)
    lines = without_progress(said)
    assert (process.returncode, len(lines)) == (1, 1), said
    line = lines[0]
    assert "the JVM that runs Spark was killed by SIGKILL in stage 'train': " in line
    assert "spark.driver.memory, which is 1g; then start the same command again" in line
    assert list(temporary.iterdir()) == []

    process = undisturbed.start("no-jvm", environment=own)
    try:
        wait_for(run / "manifest" / "train.json", process)
    finally:
        end(process)
    (left,) = temporary.iterdir()
    assert left.name.startswith(f"spark_rank-{process.pid}-")
    assert {"blockmgr", "artifacts"} <= {path.name.split("-")[0] for path in left.iterdir()}
    undisturbed.finish("no-jvm", environment=own)
    assert list(temporary.iterdir()) == []
    assert undisturbed.tables("no-jvm") == expected


@pytest.mark.slow
@pytest.mark.fault(
    "a gzipped input file ends in the middle",
    "exit code 3 and one line that names the file and the reason",
)
def test_half_a_packed_file_is_told_in_one_line(tmp_path: Path, temporary: Path) -> None:
    draw = Random(1)
    lines = (f"{draw.randrange(99)},{draw.randrange(9999)},3" for _ in range(200_000))
    packed = tmp_path / "half.csv.gz"
    whole = gzip.compress("\n".join(["user,item,rating", *lines]).encode())
    packed.write_bytes(whole[: len(whole) // 2])
    found = Driver(tmp_path).outcome(
        "half", f"input.path={packed}", "input.format=csv", command="ingest",
        environment={"TMPDIR": str(temporary)},
    )  # fmt: skip
    (line,) = without_progress(found.said)
    assert found.code == 3
    assert "half.csv.gz: is damaged and cannot be read (" in line
    assert list(temporary.iterdir()) == []
