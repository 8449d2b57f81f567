"""What an executor tells of itself, and what the driver makes of it."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from spark_rank.errors import ConfigError
from spark_rank.stages.executors import (
    ExecutorFacts,
    check_executor_facts,
    executor_facts,
    software,
)

OWN = (("spark_rank", "0.1.0 (ab)"), ("numpy", "2.4.6"))


def test_a_process_tells_its_host_and_its_software(tmp_path: Path) -> None:
    (found,) = executor_facts([1], str(tmp_path), 0.0)
    assert found == ExecutorFacts(socket.gethostname(), software(), sees_store=True)
    names = dict(found.software)
    assert names["spark_rank"].startswith("0.1.0 (")
    assert names["numpy"][0].isdigit()
    (found,) = executor_facts([1], None)
    assert found.sees_store


def test_a_file_may_show_up_a_moment_later_but_not_never(tmp_path: Path) -> None:
    path = tmp_path / "probe"
    assert not next(executor_facts([1], str(path), 0.0)).sees_store
    threading.Timer(0.3, path.touch).start()
    assert next(executor_facts([1], str(path), 30.0)).sees_store


def test_who_lacks_something_is_named() -> None:
    good = ExecutorFacts("one", OWN, sees_store=True)
    check_executor_facts([good, good], OWN, "file:/store")
    blind = ExecutorFacts("two", OWN, sees_store=False)
    with pytest.raises(ConfigError, match=r"store file:/store: two does not see"):
        check_executor_facts([good, blind, blind], OWN, "file:/store")
    old = ExecutorFacts("three", (OWN[0], ("numpy", "2.3.0")), sees_store=True)
    message = r"on three have numpy 2\.3\.0, the driver has 2\.4\.6: give .*--archives"
    with pytest.raises(ConfigError, match=message):
        check_executor_facts([good, old], OWN, "file:/store")
