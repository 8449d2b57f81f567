"""Spark's event logs for the history server: on by default, beside the runs in the store."""

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
# compressed and split, so that a long run does not write one huge file
_SETTINGS = {
    _ENABLED: "true",
    "spark.eventLog.compress": "true",
    "spark.eventLog.rolling.enabled": "true",
    "spark.eventLog.rolling.maxFileSize": "64m",
}


def event_log_settings(settings: Mapping[str, str], store: str) -> dict[str, str]:
    """Return the settings that switch the event log on; in the store, unless they name a directory.

    The JVM, which must run already, makes the directory. If it cannot be written to, a warning
    says so and the run goes on without an event log.
    """
    if settings.get(_ENABLED, "true") != "true":
        return {}
    if _DIRECTORY in settings:
        return {**_SETTINGS, **{k: v for k, v in settings.items() if k in _SETTINGS}}
    directory = f"{store.rstrip('/')}/{FOLDER}"
    try:
        path = _writable(directory, settings)
    except Py4JJavaError as error:
        emit(
            "no_event_log",
            f"no event log can be written to {directory}: {java_reason(error)}: the run goes on "
            f"without one; name another directory with --spark {_DIRECTORY}=DIR",
            level="warning",
        )
        return {_ENABLED: "false"}
    defaults = {k: v for k, v in _SETTINGS.items() if k not in settings}
    return {**defaults, _DIRECTORY: path}


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
    # a directory may exist and not be writable
    probe = jvm.org.apache.hadoop.fs.Path(path, f".writable-{uuid.uuid4().hex}")
    fs.create(probe).close()
    fs.delete(probe, False)
    return str(fs.makeQualified(path).toString())


def history_command(directory: str, port: int) -> tuple[list[str], dict[str, str]]:
    """Return the command of the history server, which shows event logs, and its environment."""
    options = {
        "spark.history.fs.logDirectory": directory,
        "spark.history.ui.port": str(port),
        "spark.history.fs.update.interval": "5s",
    }
    home = spark_home()
    user_options = os.environ.get("SPARK_HISTORY_OPTS", "")
    flags = " ".join(f"-D{name}={value}" for name, value in options.items())
    environment = {
        **os.environ,
        **find_java().environment(),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
        "SPARK_HISTORY_OPTS": f"{flags} {user_options}".strip(),
    }
    server = "org.apache.spark.deploy.history.HistoryServer"
    return [str(home / "bin" / "spark-class"), server], environment


def history_directory(settings: Mapping[str, str], store: str) -> str:
    """Return the directory of a configuration's event logs, or raise `ConfigError`."""
    directory = settings.get(_DIRECTORY) or f"{store.rstrip('/')}/{FOLDER}"
    if "://" in directory or directory.startswith("file:"):
        return directory
    if not Path(directory).is_dir():
        raise ConfigError(
            f"{directory}: no event logs found: run a stage first, or name another store with "
            "--set store=DIR"
        )
    return Path(directory).resolve().as_uri()


def check_age(days: float, settings: Mapping[str, str]) -> float:
    """Return the age from which event logs may be deleted, or raise `ConfigError`."""
    if not 1.0 <= days <= _OLDEST:
        raise ConfigError(
            f"--delete-older-than: must be 1 to {_OLDEST:,} days, not {days:g}: a log of today may "
            "belong to a run that is still going on"
        )
    if _DIRECTORY in settings:
        raise ConfigError(
            f"{_DIRECTORY} names a directory that other programs may share: let a history server "
            "clean it, with spark.history.fs.cleaner.enabled"
        )
    return days


def delete_event_logs(spark: SparkSession, store: str, days: float) -> list[str]:
    """Delete the store's event logs that were last written to `days` ago or more; return the names.

    A log is a folder of files whose latest one counts, so that logs of a current run stay.
    """
    files = Filesystem(spark)
    folder = files.qualified(f"{store.rstrip('/')}/{FOLDER}")
    written: dict[str, int] = {}
    for info in files.below(folder):
        name = info.path.removeprefix(f"{folder}/").partition("/")[0]
        written[name] = max(info.modified_ms, written.get(name, 0))
    limit = (time.time() - days * _DAY) * 1000.0
    outdated = [name for name, last in written.items() if last < limit]
    for name in outdated:
        files.delete(f"{folder}/{name}")
    return outdated
