"""The Python API against a server of Spark Connect: the answers of a session without it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from spark_rank.session.java import find_java
from tests.connect.answers import SETTINGS

pytestmark = [
    pytest.mark.connect,
    pytest.mark.skipif(
        importlib.util.find_spec("grpc") is None,
        reason="needs the client packages of Spark Connect: `make connect-test` installs them",
    ),
]

PATIENCE = 120.0
SPARK_HOME = Path(pyspark.__file__).parent
STARTED = re.compile(r"Spark Connect server started at: \S+?:(\d+)")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server on loopback; return its address, and end it by its pid."""
    folder = tmp_path_factory.mktemp("server")
    settings = {
        **SETTINGS,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(free_port()),
        "spark.local.dir": str(folder / "scratch"),
    }
    command = [
        str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]",
        *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal",
    ]  # fmt: skip
    log = folder / "log.txt"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=folder,
            env=environment(),
        )  # fmt: skip
    try:
        yield f"sc://127.0.0.1:{started_at(process, log)}"
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=20)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment() -> dict[str, str]:
    own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**os.environ, **find_java().environment(), **own}


def started_at(process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = STARTED.search(log.read_text())
        if found is not None:
            return found[1]
        assert process.poll() is None, log.read_text()
        time.sleep(0.2)
    pytest.fail(f"no server after {PATIENCE:g} s: {log.read_text()}")


def answered(folder: Path, *remote: str) -> dict[str, Any]:
    """Return the answers of a Python of its own, for one process has one kind of session."""
    folder.mkdir()
    file = folder / "answers.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.connect.answers", str(file), *remote],
        cwd=Path(__file__).parents[2], env=environment(), capture_output=True, text=True,
        timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    answers: dict[str, Any] = json.loads(file.read_text())
    return answers


def test_a_connected_session_gives_the_answers_of_any_other(server: str, tmp_path: Path) -> None:
    plain = answered(tmp_path / "plain")
    connected = answered(tmp_path / "connected", server)

    assert plain.pop("stores") == ["done"] * 3
    refused = connected.pop("stores")
    assert len(plain["models"]) == 80
    assert len(plain["metrics"]) == 40
    assert connected == plain
    assert all("Spark Connect" in line and "\n" not in line for line in refused)
    assert not (tmp_path / "connected" / "model").exists()
