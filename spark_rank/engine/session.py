"""Makes the Spark session: our defaults, then the configuration, then spark-submit's settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf
from pyspark.sql import SparkSession

from spark_rank.engine.java import find_java

_LOG_SETTINGS = Path(__file__).parent / "log4j2.properties"

# a user block is a row with lists: a batch of a thousand is some megabytes
DEFAULTS = {
    "spark.master": "local[*]",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "16",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # numba does not follow the task's cpus as BLAS does
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
}

# on one machine nothing has to be reached from outside
LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
}


def under_spark_submit() -> bool:
    """Tell whether spark-submit started this process (and thus its JVM and its settings)."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def session_settings(configured: Mapping[str, str], submitted: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in force: defaults < configuration < spark-submit."""
    settings = {**DEFAULTS, **configured, **submitted}
    if settings["spark.master"].startswith("local"):
        settings = {**LOCAL_DEFAULTS, **settings}
    return settings


@contextmanager
def spark_session(app_name: str, configured: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a session that is stopped afterwards, whatever happens."""
    submitted = dict(SparkConf().getAll()) if under_spark_submit() else {}
    settings = session_settings(configured, submitted)
    if not under_spark_submit():
        _prepare_own_jvm(settings)
    builder = SparkSession.builder.config(map=settings)
    if "spark.app.name" not in configured and not under_spark_submit():
        builder = builder.appName(app_name)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def _prepare_own_jvm(settings: dict[str, str]) -> None:
    """Set what must be known before a JVM starts: Java, worker Python, log settings."""
    os.environ.update(find_java().environment())
    if "spark.pyspark.python" not in settings:
        # the workers of a local run are this very environment
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if settings["spark.master"].startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    options = settings.get("spark.driver.extraJavaOptions", "")
    if "log4j2.configurationFile" not in options:
        log_option = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
        settings["spark.driver.extraJavaOptions"] = f"{options} {log_option}".strip()
