"""A Spark session that somebody else has started in this process: used, left as it was."""

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
    """Yield a session of our own on the running context, with the settings that it can take.

    A line names the configured settings that only a new context could take.
    """
    own = running.newSession()
    for name, value in settings.items():
        if own.conf.isModifiable(name):
            own.conf.set(name, value)
    fixed = unmet(own, configured)
    if fixed:
        emit(
            "session_borrowed",
            f"this process has a Spark session already, which keeps {', '.join(fixed)}: stop it "
            "before, or leave these settings out",
            level="warning",
        )
    try:
        yield own
    finally:
        _make_active(running)


def unmet(session: SparkSession, configured: Mapping[str, str]) -> list[str]:
    """Return, in words, the settings that differ from the configured ones."""
    found = {name: session.conf.get(name, None) for name in configured}
    return [
        f"{name}={_shown(name, found[name])} instead of {_shown(name, value)}"
        for name, value in configured.items()
        if found[name] != value
    ]


def _shown(name: str, value: str | None) -> str:
    return "its default" if value is None else shown_setting(name, value)


def _make_active(session: SparkSession) -> None:
    """Undo what `createDataFrame` does: it makes its session the one that others find."""
    SparkSession._activeSession = session
    jvm = session._jvm
    assert jvm is not None
    SparkSession._get_j_spark_session_class(jvm).setActiveSession(session._jsparkSession)
