"""Event logs: in the store by default, never a reason to fail, shown by the history server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_rank.errors import ConfigError
from spark_rank.session.event_logs import (
    check_age,
    delete_event_logs,
    event_log_settings,
    history_command,
    history_directory,
)

ROOT = Path(__file__).parents[2]


def test_by_default_they_are_in_the_store(spark: SparkSession, tmp_path: Path) -> None:
    found = event_log_settings({}, str(tmp_path / "store"))
    assert found["spark.eventLog.enabled"] == "true"
    assert found["spark.eventLog.rolling.enabled"] == "true"
    assert found["spark.eventLog.dir"].endswith("/store/event_logs")
    folder = tmp_path / "store" / "event_logs"
    assert folder.is_dir()
    assert not list(folder.glob("[!.]*"))


def test_settings_have_the_last_word(spark: SparkSession, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert event_log_settings({"spark.eventLog.enabled": "false"}, str(store)) == {}
    given = {"spark.eventLog.dir": "hdfs:///logs", "spark.eventLog.compress": "false"}
    found = event_log_settings(given, str(store))
    assert found["spark.eventLog.compress"] == "false"
    assert "spark.eventLog.dir" not in found
    assert not store.exists()


@pytest.mark.parametrize("store", ["nosuch://bucket/x", "s3a://bucket/x", "{file}/store"])
def test_where_nothing_can_be_written_there_is_a_warning_and_none(
    spark: SparkSession, tmp_path: Path, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    place = store.replace("{file}", str(tmp_path / "file"))
    assert event_log_settings({}, place) == {"spark.eventLog.enabled": "false"}
    shown = capsys.readouterr().err
    assert shown.startswith("spark-rank: no event log can be written to")
    assert shown.count("\n") == 1


def test_where_the_history_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no event logs found"):
        history_directory({}, str(tmp_path))
    (tmp_path / "event_logs").mkdir()
    assert history_directory({}, str(tmp_path)) == (tmp_path / "event_logs").as_uri()
    assert history_directory({"spark.eventLog.dir": "s3a://b/l"}, str(tmp_path)) == "s3a://b/l"
    command, environment = history_command("file:/x", 18999)
    assert command[0].endswith("bin/spark-class")
    assert "-Dspark.history.ui.port=18999" in environment["SPARK_HISTORY_OPTS"]


def event_log(store: Path, name: str, *ages: float) -> Path:
    """Make a log of several files, by how many days ago each was written."""
    folder = store / "event_logs" / name
    folder.mkdir(parents=True)
    for number, days in enumerate(ages):
        part = folder / f"events_{number}_{name}"
        part.write_text("{}")
        os.utime(part, (time.time() - days * 86400,) * 2)
    return folder


def test_old_logs_are_deleted_and_those_that_are_written_to_stay(
    spark: SparkSession, tmp_path: Path
) -> None:
    old = event_log(tmp_path, "eventlog_v2_local-1", 40.0, 31.0)
    # it began long ago, and goes on
    long = event_log(tmp_path, "eventlog_v2_local-2", 40.0, 0.0)
    new = event_log(tmp_path, "eventlog_v2_local-3", 29.0)
    assert delete_event_logs(spark, str(tmp_path), 30.0) == [old.name]
    assert (old.exists(), long.exists(), new.exists()) == (False, True, True)
    assert delete_event_logs(spark, str(tmp_path), 30.0) == []
    assert delete_event_logs(spark, str(tmp_path / "none"), 30.0) == []


def test_a_link_among_the_logs_is_not_followed(spark: SparkSession, tmp_path: Path) -> None:
    other = event_log(tmp_path / "other", "of_others", 50.0)
    (tmp_path / "event_logs").mkdir()
    (tmp_path / "event_logs" / "link").symlink_to(other)
    assert delete_event_logs(spark, str(tmp_path), 30.0) == ["link"]
    assert list(other.iterdir())


@pytest.mark.parametrize("days", [0.0, -1.0, float("nan"), float("inf")])
def test_logs_of_today_and_of_others_are_not_deleted(days: float) -> None:
    with pytest.raises(ConfigError, match="1 to 100,000 days"):
        check_age(days, {})
    with pytest.raises(ConfigError, match="other programs may share"):
        check_age(30.0, {"spark.eventLog.dir": "hdfs:///logs"})
    assert check_age(1.0, {}) == 1.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def applications(port: int, seconds: float) -> list[dict[str, Any]]:
    """Ask the history server until it knows an application."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/applications") as answer:
                found: list[dict[str, Any]] = json.load(answer)
                if found:
                    return found
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.5)
    return []


@pytest.mark.slow
def test_the_history_server_shows_the_stages_of_a_run(tmp_path: Path) -> None:
    store = ["--set", f"store={tmp_path}", "synthesize.users=20", "synthesize.items=40"]
    start = [sys.executable, "-m", "spark_rank"]
    made = subprocess.run(
        [*start, "synthesize", *store, "--spark", "spark.master=local[1]"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    port = free_port()
    server = subprocess.Popen(
        [*start, "history", "--port", str(port), *store], cwd=ROOT, env={**os.environ},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        (found,) = applications(port, 60.0)
        assert found["name"] == "spark_rank synthesize default"
        url = f"http://127.0.0.1:{port}/api/v1/applications/{found['id']}/jobs"
        with urllib.request.urlopen(url) as answer:
            names = {job.get("description") for job in json.load(answer)}
        assert "default: synthesize" in names
    finally:
        server.terminate()
        server.wait(20)
