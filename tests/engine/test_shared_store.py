"""What an executor tells of a file that the driver has written."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from spark_rank.engine.shared_store import missing_here


def test_a_host_that_does_not_see_the_file_is_named(tmp_path: Path) -> None:
    assert list(missing_here([1], str(tmp_path / "probe"), 0.0)) == [socket.gethostname()]


def test_who_sees_it_a_moment_later_sees_it(tmp_path: Path) -> None:
    path = tmp_path / "probe"
    threading.Timer(0.3, path.touch).start()
    assert list(missing_here([1], str(path), 30.0)) == []
