"""Spark's event logs: on by default, beside the runs in the store, for the history server."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from spark_rank.errors import ConfigError
from spark_rank.events import emit
from spark_rank.session.filesystem import Filesystem, java_reason
from spark_rank.session.java import find_java
from spark_rank.session.spark_home import spark_home

FOLDER = "event_logs"
_DAY = 86_400.0
_OLDEST = 100_000
_ENABLED, _DIRECTORY = "spark.eventLog.enabled", "spark.eventLog.dir"
# compressed, and in files of this size: a long run does not make one endless file
_SETTINGS = {
    _ENABLED: "true",
    "spark.eventLog.compress": "true",
    "spark.eventLog.rolling.enabled": "true",
    "spark.eventLog.rolling.maxFileSize": "64m",
}


def event_log_settings(settings: Mapping[str, str], store: str) -> dict[str, str]:
    """Return the settings that switch the event log on, in the store unless they name a place.

    The directory is made through the JVM, which must run already. Where nothing can be written
    there, a warning says so and the run goes on without an event log.
    """
    if settings.get(_ENABLED, "true") != "true":
        return {}
    if _DIRECTORY in settings:
        return {**_SETTINGS, **{k: v for k, v in settings.items() if k in _SETTINGS}}
    directory = f"{store.rstrip('/')}/{FOLDER}"
    try:
        place = _writable(directory, settings)
    except Py4JJavaError as error:
        emit(
            "no_event_log",
            f"no event log can be written to {directory}: {java_reason(error)}: the run goes on "
            f"without; name another place with --spark {_DIRECTORY}=DIR",
            level="warning",
        )
        return {_ENABLED: "false"}
    own = {k: v for k, v in _SETTINGS.items() if k not in settings}
    return {**own, _DIRECTORY: place}


def _writable(directory: str, settings: Mapping[str, str]) -> str:
    """Make the directory, write and delete a file in it; return its full path."""
    jvm: Any = SparkContext._jvm
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    hadoop = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(conf._jconf)
    path = jvm.org.apache.hadoop.fs.Path(directory)
    fs = path.getFileSystem(hadoop)
    fs.mkdirs(path)
    # a directory that is there may still take no file
    probe = jvm.org.apache.hadoop.fs.Path(path, f".writable-{uuid.uuid4().hex}")
    fs.create(probe).close()
    fs.delete(probe, False)
    return str(fs.makeQualified(path).toString())


def history_command(directory: str, port: int) -> tuple[list[str], dict[str, str]]:
    """Return the command, and its environment, that shows event logs to a browser."""
    options = {
        "spark.history.fs.logDirectory": directory,
        "spark.history.ui.port": str(port),
        "spark.history.fs.update.interval": "5s",
    }
    home = spark_home()
    given = os.environ.get("SPARK_HISTORY_OPTS", "")
    flags = " ".join(f"-D{name}={value}" for name, value in options.items())
    environment = {
        **os.environ,
        **find_java().environment(),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
        "SPARK_HISTORY_OPTS": f"{flags} {given}".strip(),
    }
    server = "org.apache.spark.deploy.history.HistoryServer"
    return [str(home / "bin" / "spark-class"), server], environment


def history_directory(settings: Mapping[str, str], store: str) -> str:
    """Return where the event logs of a configuration are, or raise `ConfigError`."""
    directory = settings.get(_DIRECTORY) or f"{store.rstrip('/')}/{FOLDER}"
    if "://" in directory or directory.startswith("file:"):
        return directory
    if not Path(directory).is_dir():
        raise ConfigError(
            f"{directory}: there are no event logs: run a stage first, or name another store with "
            "--set store=DIR"
        )
    return Path(directory).resolve().as_uri()


def check_age(days: float, settings: Mapping[str, str]) -> float:
    """Return the age at which event logs may go, or raise `ConfigError`."""
    if not 1.0 <= days <= _OLDEST:
        raise ConfigError(
            f"--delete-older-than: must be 1 to {_OLDEST:,} days, not {days:g}: a log of today may "
            "be that of a run that goes on"
        )
    if _DIRECTORY in settings:
        raise ConfigError(
            f"{_DIRECTORY} names a place that other programs may share: let a history server clean "
            "it, with spark.history.fs.cleaner.enabled"
        )
    return days


def delete_event_logs(spark: SparkSession, store: str, days: float) -> list[str]:
    """Delete what is in the store's folder and was last written to so long ago; return the names.

    A log is a folder of files, of which the last one counts: those of a run that goes on stay.
    """
    files = Filesystem(spark)
    folder = files.qualified(f"{store.rstrip('/')}/{FOLDER}")
    written: dict[str, int] = {}
    for info in files.below(folder):
        name = info.path.removeprefix(f"{folder}/").partition("/")[0]
        written[name] = max(info.modified_ms, written.get(name, 0))
    before = (time.time() - days * _DAY) * 1000.0
    gone = [name for name, last in written.items() if last < before]
    for name in gone:
        files.delete(f"{folder}/{name}")
    return gone
