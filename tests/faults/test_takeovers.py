"""A pipeline that works on a run while another one, told so, takes the run from it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.faults.driver import LONGEST, Driver, Tables, end

# several commands, each with a bound of its own
pytestmark = pytest.mark.timeout(3000)


@pytest.mark.slow
@pytest.mark.fault(
    "a second start with `--takeover`, while a pipeline works on the run",
    "the second goes on and finishes, tables as undisturbed; the first ends with exit code 2 and "
    "one line, and publishes nothing more",
)
def test_who_is_taken_over_ends_and_the_other_finishes(
    undisturbed: Driver, expected: Tables
) -> None:
    run = undisturbed.run("taken")
    first = undisturbed.start("taken")
    try:
        wait_for(run / "manifest" / "ingest.json", first)
        undisturbed.finish("taken", "--takeover")
        _, said = first.communicate(timeout=LONGEST)
    finally:
        end(first)
    last = said.strip().splitlines()[-1]
    assert (first.returncode, "was taken over by another process" in last) == (2, True), said
    assert "spark_rank/cli.py" not in said
    assert undisturbed.tables("taken") == expected
    assert "already done" in undisturbed.finish("taken")
    assert not list((run / "_drafts").iterdir())


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a process has written a file."""
    until = time.monotonic() + LONGEST
    while not path.exists():
        assert process.poll() is None, "the command ended too early"
        assert time.monotonic() < until, f"no {path} in {LONGEST:.0f} s"
        time.sleep(0.05)
