"""Makes the Spark session: our defaults, then the configuration, then spark-submit's settings."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from spark_rank.errors import ConfigError, SparkDiedError
from spark_rank.events import emit, process_log
from spark_rank.redaction import PATTERN, is_secret, remember, shown_setting
from spark_rank.session.borrowed_session import borrowed, running_session
from spark_rank.session.cluster_settings import cluster_defaults
from spark_rank.session.event_logs import event_log_settings
from spark_rank.session.filesystem import java_reason
from spark_rank.session.held_lines import FILE, PROPERTY, shown_with_errors
from spark_rank.session.java import find_java
from spark_rank.session.jvm_death import jvm_death_reported
from spark_rank.session.own_folder import own_folder, temporary_files_in
from spark_rank.session.spark_home import spark_home
from spark_rank.session.worker_log import COLLECT

_LOG_SETTINGS = {
    "text": Path(__file__).parent / "log4j2.properties",
    "json": Path(__file__).parent / "log4j2-json.properties",
}

# the greatest value that Spark takes; with it, Spark does not count bytes at all
NO_BYTE_LIMIT = str(2**31 - 1)
# a user block is a row with lists: a batch of a thousand blocks takes a few megabytes
DEFAULTS = {
    "spark.master": "local[*]",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    # no limit by bytes: to know them, Spark goes through a column of null lists once a row, which
    # took three quarters of the time that models need to reach a worker
    "spark.sql.execution.arrow.maxBytesPerBatch": NO_BYTE_LIMIT,
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    # the driver shows what workers log
    COLLECT: "true",
    # Spark's memory metrics include the Python workers
    "spark.executor.processTreeMetrics.enabled": "true",
    # otherwise every column function calls the JVM several times to record its place in Python
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.redaction.regex": PATTERN,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # numba, unlike BLAS, does not limit its threads to the task's CPUs
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
}

# on one machine no other host has to reach the driver
LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    # saves 15 ms per task with Python workers compared to TCP; not on clusters, where the path of
    # the socket may exceed its limit
    "spark.python.unix.domain.socket.enabled": "true",
}

# the values of a whole file become garbage quickly: a concurrent collector takes a tenth of the
# tasks' cores for that, and pauses do not matter in a batch job
COLLECTOR = "-XX:+UseParallelGC"
# the path of a Unix socket has at most 107 characters, of which its name takes 43
_LONGEST_SOCKET_FOLDER = 60
_JVM_VARIABLES = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")

# settings that only make sense on the cluster: reading a store's files from here needs none
_OF_CLUSTERS = (
    "spark.driver.host", "spark.driver.port", "spark.driver.bindAddress", "spark.kubernetes.",
    "spark.yarn.", "spark.executor.", "spark.executorEnv.", "spark.archives", "spark.scheduler.",
)  # fmt: skip


def under_spark_submit() -> bool:
    """Tell whether spark-submit started this process, its JVM and its settings."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def session_settings(configured: Mapping[str, str], submitted: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in force: defaults < configuration < spark-submit."""
    settings = {**DEFAULTS, **configured, **submitted}
    if settings["spark.master"].startswith("local"):
        return {**LOCAL_DEFAULTS, **settings}
    return {**cluster_defaults(settings, os.environ), **settings}


def on_this_machine(configured: Mapping[str, str]) -> dict[str, str]:
    """Return the settings to read a store's files on this machine, without the cluster's own."""
    local = {name: value for name, value in configured.items() if not name.startswith(_OF_CLUSTERS)}
    return {**local, "spark.master": "local[*]"}


def overruled(configured: Mapping[str, str], submitted: Mapping[str, str]) -> list[str]:
    """Return the names of configured settings that spark-submit overrides."""
    return [n for n, value in configured.items() if submitted.get(n, value) != value]


@contextmanager
def runtime_setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Change a setting of the running session for a block of code."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def _submitted_settings() -> dict[str, str]:
    """Return the settings of spark-submit: --conf, --master and spark-defaults.conf."""
    # a SparkConf made before Python is connected to the JVM is empty
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


@contextmanager
def spark_session(
    app_name: str, configured: Mapping[str, str], store: str | None = None
) -> Iterator[SparkSession]:
    """Yield a session that is stopped afterwards, whatever happens.

    With a `store` the session writes an event log there, unless the settings say otherwise. If this
    process already has a Spark context, the session uses it and leaves it running.
    """
    running = running_session()
    if running is not None:
        wanted = {name: value for name, value in configured.items() if DEFAULTS.get(name) != value}
        with borrowed(running, session_settings(configured, {}), wanted) as session:
            yield session
        return
    submitted = _submitted_settings() if under_spark_submit() else {}
    settings = session_settings(configured, submitted)
    remember(settings)
    for name in overruled(configured, submitted):
        used, unused = (shown_setting(name, source[name]) for source in (submitted, configured))
        emit("overruled", f"spark-submit's {name}={used} overrides the configured {unused}")
    if not under_spark_submit():
        _prepare_own_jvm(settings)
    try:
        spark = _start(app_name, configured, settings, store)
    except (PySparkException, PySparkRuntimeError, Py4JJavaError) as error:
        raise ConfigError(
            f"Spark did not start with these settings: {java_reason(error)}: check `spark:` in "
            "the configuration, --spark and the options of spark-submit"
        ) from None
    if under_spark_submit() and "spark.log.level" not in settings:
        spark.sparkContext.setLogLevel("WARN")
    with shown_with_errors(_held_lines()), _stopped_afterwards(spark, settings):
        yield spark


@contextmanager
def _stopped_afterwards(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    dead = False
    with _interruptible() as interrupted:
        try:
            with jvm_death_reported(spark, settings):
                yield
        except SparkDiedError:
            dead = True
            raise
        except BaseException:
            if not interrupted.is_set():
                raise
            # the interrupted call may have raised another error by now; log lines of the tasks
            # being cancelled would tell the user nothing new
            with suppress(Py4JError, OSError):
                spark.sparkContext.setLogLevel("OFF")
            raise KeyboardInterrupt from None
        finally:
            # an interrupt may have broken the connection to the JVM, and then the JVM ends too
            with suppress(*((Py4JError, OSError) if interrupted.is_set() else ())):
                if not dead:
                    spark.stop()


def _start(
    app_name: str, configured: Mapping[str, str], settings: dict[str, str], store: str | None
) -> SparkSession:
    if not under_spark_submit():
        with temporary_files_in(_own_folder()):
            _start_jvm(settings)
    if store is not None:
        settings = settings | event_log_settings(settings, store)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    if "spark.app.name" not in configured and not under_spark_submit():
        builder = builder.appName(app_name)
    return builder.getOrCreate()


def launch_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for the JVM's command line, which every user of the machine can see.

    Secrets are left out and set once the JVM runs, which is early enough for them. Secrets within
    the JVM's own options cannot be left out.
    """
    return {name: value for name, value in settings.items() if not is_secret(name)}


def _start_jvm(settings: Mapping[str, str]) -> None:
    conf = SparkConf(loadDefaults=False)
    for name, value in launch_settings(settings).items():
        conf.set(name, value)
    SparkContext._ensure_initialized(conf=conf)


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Let Ctrl-C raise KeyboardInterrupt and print nothing; yield an event that it sets.

    Spark's own handler calls the JVM from within the interrupted call, and py4j logs a stack trace
    for each such call.
    """
    interrupted = threading.Event()

    def interrupt(signum: int, frame: FrameType | None) -> None:
        interrupted.set()
        logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # only the main thread may handle signals
        return
    previous = signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, previous)
        logging.disable(logging.NOTSET)


def _prepare_own_jvm(settings: dict[str, str]) -> None:
    """Set what must be set before a JVM starts: Java, the workers' Python, log settings."""
    spark_home()  # pyspark's own error for a missing Spark does not say what to do
    os.environ.update(find_java().environment())
    if "spark.pyspark.python" not in settings:
        # the workers of a local run use the same environment
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if settings["spark.master"].startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    options = with_collector(settings, os.environ)
    if "log4j2.configurationFile" not in options:
        log_settings = _LOG_SETTINGS[process_log().form]
        options = f"{options} -Dlog4j2.configurationFile={log_settings.as_uri()}"
        options = f'{options} "-D{PROPERTY}={_held_lines()}"'
    settings["spark.driver.extraJavaOptions"] = options.strip()
    settings |= temporary_settings(settings, own_folder)


def temporary_settings(
    settings: Mapping[str, str], folder_in: Callable[[Path], Path]
) -> dict[str, str]:
    """Return settings that keep temporary files in this process's own folders.

    `folder_in` returns the process's folder below a directory. A spark.local.dir that is configured
    for a local run gets such a folder; executors on other machines keep their own directories.
    """
    changed: dict[str, str] = {}
    options = settings.get("spark.driver.extraJavaOptions", "")
    if "-Djava.io.tmpdir=" not in options:
        folder = folder_in(Path(tempfile.gettempdir()))
        changed["spark.driver.extraJavaOptions"] = f'{options} "-Djava.io.tmpdir={folder}"'.strip()
        if len(str(folder)) > _LONGEST_SOCKET_FOLDER:
            changed["spark.python.unix.domain.socket.enabled"] = "false"
    paths = settings.get("spark.local.dir", "").split(",")
    if settings["spark.master"].startswith("local") and any(paths):
        changed["spark.local.dir"] = ",".join(_inside(path, folder_in) for path in paths if path)
    return changed


def _inside(path: str, folder_in: Callable[[Path], Path]) -> str:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
        return str(folder_in(Path(path)))
    except OSError:
        return path  # Spark reports what is wrong with it


def _own_folder() -> Path:
    return own_folder(Path(tempfile.gettempdir()))


def _held_lines() -> Path:
    return _own_folder() / FILE


def with_collector(settings: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Return the JVM's options; for a local run with our garbage collector, unless one is chosen.

    A JVM does not start with two collectors.
    """
    options = settings.get("spark.driver.extraJavaOptions", "")
    all_options = [options, *(environment.get(name, "") for name in _JVM_VARIABLES)]
    is_chosen = any(re.search(r"-XX:\+Use\w*GC", text) for text in all_options)
    if is_chosen or not settings["spark.master"].startswith("local"):
        return options
    return f"{options} {COLLECTOR}".strip()


@contextmanager
def a_task_a_file(spark: SparkSession) -> Iterator[None]:
    """For a block of code, read every file, or part of a large one, in a task of its own.

    Spark groups files by bytes, but the work depends on the users: with one file a task all cores
    stay busy and progress is visible. Opening a file is made to seem as costly as a full task, so
    that Spark puts no second one into it.
    """
    whole = spark.conf.get("spark.sql.files.maxPartitionBytes")
    with runtime_setting(spark, "spark.sql.files.openCostInBytes", str(whole)):
        yield
