"""A wall clock that goes back, in every process of a command, while the command works."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from tests.faults.driver import CHECKOUT, Driver, Tables

# several commands, each with a bound of its own
pytestmark = pytest.mark.timeout(3000)


@pytest.fixture(scope="module")
def backwards(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment in which the clock loses an hour every other second."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler for a clock that goes back")
    library = tmp_path_factory.mktemp("clock") / "clock.so"
    source = CHECKOUT / "tests" / "faults" / "backward_clock.c"
    build = [compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]
    subprocess.run(build, check=True, capture_output=True)
    return {"LD_PRELOAD": str(library), "CLOCK_BASE": str(int(time.monotonic()))}


def started(run: Path) -> list[str]:
    """Return when the stages began, in the order in which they were done."""
    manifest = sorted((run / "manifest").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(path.read_text())["started"] for path in manifest]


@pytest.mark.slow
@pytest.mark.fault(
    "the clock goes back, an hour every other second, in all processes of a pipeline",
    "tables as undisturbed; the same command by a right clock finds all of it done",
)
def test_a_clock_that_goes_back_changes_nothing(
    undisturbed: Driver, expected: Tables, backwards: dict[str, str]
) -> None:
    undisturbed.finish("backwards", environment=backwards)
    times = [datetime.fromisoformat(text) for text in started(undisturbed.run("backwards"))]
    assert any(later < earlier for earlier, later in pairwise(times))
    assert undisturbed.tables("backwards") == expected
    said = undisturbed.finish("backwards")
    assert said.count("already done") == len(times)
