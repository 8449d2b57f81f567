"""Reports once, in one line, that the JVM that runs Spark has ended during a command.

Every later call to the JVM fails too, with socket errors that explain nothing.
"""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_rank.errors import SparkDiedError

# sockets close before the process ends: it frees its memory in between
_GRACE = 5.0
_LOST = (Py4JNetworkError, ConnectionError, EOFError)
# loggers that report that the JVM does not answer; py4j uses the root logger too
_LOGGERS = (None, "py4j", "py4j.clientserver", "py4j.java_gateway", "spark_rank.store.lease")


def has_ended(context: SparkContext, grace: float = _GRACE) -> bool:
    """Tell whether the JVM of a context is gone, or ends within `grace` seconds."""
    gateway: Any = context._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:  # spark-submit's own JVM, which started this process
        return not _answers(gateway)
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        return False
    return True


def _is_end(error: BaseException, context: SparkContext) -> bool:
    """Tell whether an error follows from the JVM's end; wait only if the connection was lost."""
    lost: BaseException | None = error
    while lost is not None and not isinstance(lost, _LOST):
        lost = lost.__context__
    return has_ended(context, 0.0 if lost is None else _GRACE)


def _answers(gateway: Any) -> bool:
    place = gateway.gateway_parameters
    try:
        socket.create_connection((place.address, place.port), timeout=_GRACE).close()
    except OSError:
        return False
    return True


@contextmanager
def named_stage(spark: SparkSession, stage: str) -> Iterator[None]:
    """Raise `SparkDiedError` with the stage's name in place of errors that follow the JVM's end."""
    try:
        yield
    except Exception as error:
        if _is_end(error, spark.sparkContext):
            raise death(spark.sparkContext, stage) from None
        raise


@contextmanager
def jvm_death_reported(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Raise `SparkDiedError` in place of errors that follow the JVM's end; mute other reports."""
    context = spark.sparkContext
    with ExitStack() as stack:
        stack.enter_context(_quiet_loggers(context))
        _quiet_accumulators(context)
        try:
            yield
        except Exception as error:
            if not _is_end(error, context):
                raise
            died = _stage_error(error) or death(context)
            forget(spark)
            memory = settings.get("spark.driver.memory", "Spark's default")
            raise SparkDiedError(
                f"{died}: check the memory of this machine (the system log names processes that "
                f"were killed) and spark.driver.memory, which is {memory}; then start the same "
                "command again: it goes on with what is missing"
            ) from None


def death(context: SparkContext, stage: str | None = None) -> SparkDiedError:
    """Return the error that says how the JVM ended, and in which stage."""
    process = getattr(context._gateway, "proc", None)
    where = "" if stage is None else f" in stage '{stage}'"
    return SparkDiedError(f"the JVM that runs Spark {_how(process)}{where}")


def _how(process: subprocess.Popen[bytes] | None) -> str:
    code = None if process is None else process.returncode
    if code is None:
        return "has ended"
    if code >= 0:
        return f"has ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"


def _stage_error(error: BaseException | None) -> SparkDiedError | None:
    """Return the error that names the stage, from the chain of errors that led to this one."""
    while error is not None and not isinstance(error, SparkDiedError):
        error = error.__context__
    return error


def forget(spark: SparkSession) -> None:
    """Remove the dead JVM from pyspark, so that a new one can be started."""
    context: Any = spark.sparkContext
    context._jsc = None  # otherwise `stop` would call the JVM
    context.stop()
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


@contextmanager
def _quiet_loggers(context: SparkContext) -> Iterator[None]:
    """Mute log lines that the JVM does not answer, once it is gone."""

    def is_news(record: logging.LogRecord) -> bool:
        unrelated = record.name == "root" and "py4j" not in record.pathname
        return unrelated or record.levelno < logging.WARNING or not has_ended(context)

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(is_news)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_news)


def _quiet_accumulators(context: SparkContext) -> None:
    """Keep the accumulator server from printing a stack trace when the JVM is gone."""
    server: Any = context._accumulatorServer
    handle = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not has_ended(context):
            handle(request, address)

    server.handle_error = handle_error
