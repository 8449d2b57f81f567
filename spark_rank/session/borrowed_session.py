"""A Spark session that other code started in this process: used, and left as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_rank.events import emit
from spark_rank.redaction import shown_setting


def running_session() -> SparkSession | None:
    """Return the session of the Spark context that runs in this process; None without one."""
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


@contextmanager
def borrowed(
    running: SparkSession, settings: Mapping[str, str], configured: Mapping[str, str]
) -> Iterator[SparkSession]:
    """Yield a new session on the running context, with the settings that can still be changed.

    A warning names the configured settings that need a new context.
    """
    session = running.newSession()
    for name, value in settings.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    unchanged = unmet(session, configured)
    if unchanged:
        emit(
            "session_borrowed",
            f"this process has a Spark session already, which keeps {', '.join(unchanged)}: stop "
            "that session first, or leave these settings out",
            level="warning",
        )
    try:
        yield session
    finally:
        _make_active(running)


def unmet(session: SparkSession, configured: Mapping[str, str]) -> list[str]:
    """Return a phrase for every setting that differs from the configured one."""
    actual = {name: session.conf.get(name, None) for name in configured}
    return [
        f"{name}={_shown(name, actual[name])} instead of {_shown(name, value)}"
        for name, value in configured.items()
        if actual[name] != value
    ]


def _shown(name: str, value: str | None) -> str:
    return "its default" if value is None else shown_setting(name, value)


def _make_active(session: SparkSession) -> None:
    """Make a session the active one again: `createDataFrame` has made its own session active."""
    SparkSession._activeSession = session
    jvm = session._jvm
    assert jvm is not None
    SparkSession._get_j_spark_session_class(jvm).setActiveSession(session._jsparkSession)
