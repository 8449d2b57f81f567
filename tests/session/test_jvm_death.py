"""How the end of the JVM is told; tests/faults ends a real one."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from spark_rank.errors import SparkDiedError
from spark_rank.session import jvm_death
from spark_rank.session.jvm_death import _is_end, _quiet_loggers, _stage_error, death, has_ended


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a context whose JVM is a process that waits, with a port that answers."""
    monkeypatch.setattr(jvm_death, "_GRACE", 2.0)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = SimpleNamespace(address="127.0.0.1", port=server.getsockname()[1])
        gateway = SimpleNamespace(proc=process, gateway_parameters=place)
        yield SimpleNamespace(_gateway=gateway, server=server)
    process.kill()
    process.communicate()


def test_a_jvm_that_runs_has_not_ended(jvm: Any) -> None:
    assert not has_ended(jvm, grace=0.1)
    jvm._gateway.proc.kill()
    assert has_ended(jvm)


def test_of_the_jvm_of_spark_submit_only_the_port_is_known(jvm: Any) -> None:
    jvm._gateway.proc = None
    assert not has_ended(jvm)
    jvm.server.close()
    assert has_ended(jvm)


def test_a_lost_connection_is_worth_a_wait(jvm: Any) -> None:
    ending = threading.Timer(0.5, jvm._gateway.proc.kill)
    ending.start()
    assert not _is_end(ValueError("of the command itself"), jvm)
    lost = ValueError("on top of it")
    lost.__context__ = ConnectionResetError("by peer")
    assert _is_end(lost, jvm)
    ending.join()
    assert _is_end(ValueError("whatever it is"), jvm)


def test_it_is_told_how_it_ended_and_where(jvm: Any) -> None:
    jvm._gateway.proc.send_signal(signal.SIGKILL)
    assert has_ended(jvm)
    said = "the JVM that runs Spark was killed by SIGKILL"
    assert str(death(jvm)) == said
    assert str(death(jvm, "train")) == f"{said} in stage 'train'"
    jvm._gateway.proc = SimpleNamespace(returncode=3)
    assert str(death(jvm)) == "the JVM that runs Spark has ended with exit code 3"
    jvm._gateway.proc = None
    assert str(death(jvm)) == "the JVM that runs Spark has ended"


def test_what_names_the_stage_is_found_below_what_came_on_top() -> None:
    def fail() -> None:
        try:
            raise SparkDiedError("in stage 'train'")
        finally:
            raise ConnectionRefusedError("of something that was to be closed")

    with pytest.raises(ConnectionRefusedError) as caught:
        fail()
    assert str(_stage_error(caught.value)) == "in stage 'train'"
    assert _stage_error(ValueError("another")) is None


@pytest.mark.slow
def test_nobody_logs_of_a_jvm_that_is_gone(jvm: Any, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("spark_rank.store.lease")
    with _quiet_loggers(jvm):
        logger.warning("while it runs")
        jvm._gateway.proc.kill()
        logger.warning("when it is gone")
        logging.getLogger().warning("of something else")
    logger.warning("afterwards")
    assert caplog.messages == ["while it runs", "of something else", "afterwards"]
