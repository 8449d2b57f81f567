"""kill -9 of the driver at random moments: the same command goes on, and nothing shows it."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.faults.driver import TABLES, Driver

KILLS = 20


@pytest.mark.slow
@pytest.mark.fault(
    "the driver is killed between and inside waves, 20 times at random",
    "the same command goes on with what is missing; tables as undisturbed, never half a one",
)
@pytest.mark.timeout(6000)
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
