"""kill -9 of the driver at random moments: the same command goes on, and nothing shows it."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.faults.driver import TABLES, Driver
from tests.outputs import TOLD_OF_THE_RUN, differences, names, page, records

KILLS = 20
RUN = "one"
# what this run leaves beside the tables that readers look for
BESIDE = (
    "feature_files",
    "final_feature_files",
    "quarantine",
    "rating_scale",
    "synthetic",
    *TOLD_OF_THE_RUN,
)


@pytest.mark.slow
@pytest.mark.fault(
    "the driver is killed between and inside waves, 20 times at random",
    "the same command goes on with what is missing; tables and feature files are the same bytes, "
    "never half a one",
)
@pytest.mark.timeout(6000)
def test_random_kills_leave_no_trace(tmp_path: Path) -> None:
    whole = Driver(tmp_path, tmp_path / "undisturbed")
    begun = time.monotonic()
    whole.finish(RUN)
    longest = time.monotonic() - begun
    expected = whole.run(RUN)
    assert {*TABLES, *BESIDE} <= {*names(expected)}
    draw = random.Random(8)
    kills = number = 0
    while kills < KILLS:
        driver = Driver(tmp_path, tmp_path / f"disturbed-{number}")
        run = driver.run(RUN)
        # at any moment, from its first to its last; what is left after a kill takes less time
        while kills < KILLS and driver.killed_after(RUN, draw.uniform(0.0, longest)):
            kills += 1
            assert half_made(run, expected) == [], f"not whole after kill {kills}"
        driver.finish(RUN)
        assert names(run) == names(expected)
        assert half_made(run, expected) == []
        assert (records(run), page(run)) == (records(expected), page(expected))
        number += 1


def half_made(run: Path, expected: Path) -> list[str]:
    """Return the tables and files that a reader sees, and that are not those of the other run."""
    seen = names(run) if run.exists() else []
    return differences(run, expected, [name for name in seen if name not in TOLD_OF_THE_RUN])
