"""One undisturbed run that all faults are measured by."""

from __future__ import annotations

import pytest

from tests.faults.driver import TABLES, Driver, Tables


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    """Return a store with a whole run, `undisturbed`."""
    driver = Driver(tmp_path_factory.mktemp("faults"))
    driver.finish("undisturbed")
    return driver


@pytest.fixture(scope="session")
def expected(undisturbed: Driver) -> Tables:
    """Return its tables."""
    found = undisturbed.tables("undisturbed")
    assert found.keys() == set(TABLES)
    return found
