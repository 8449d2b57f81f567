"""Events of a run, written to stderr: as text lines for people, or as JSON lines for machines.

There is one log per process: `configure` sets its form, `emit` writes an event. No line contains a
secret of the Spark settings or a control character of terminals.
"""

from __future__ import annotations

import json
import sys
import threading
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from spark_rank.redaction import redact
from spark_rank.visible import visible

Form = Literal["text", "json"]
FORMS: tuple[Form, ...] = ("text", "json")
Level = Literal["info", "warning", "error"]


class EventLog:
    """Writes events to `stream`, by default whatever stderr is at the moment."""

    def __init__(self, form: Form = "text", stream: TextIO | None = None) -> None:
        self.form = form
        self.run: str | None = None
        self._stream = stream
        # so that lines of different threads do not mix
        self._writing = threading.Lock()

    @property
    def draws(self) -> bool:
        """Tell whether the output is a terminal, where a line can be redrawn in place."""
        return self.form == "text" and self._out().isatty()

    def emit(
        self,
        event: str,
        message: str,
        *,
        stage: str | None = None,
        level: Level = "info",
        **fields: Any,
    ) -> None:
        """Write one event: as JSON with all its fields, or as text with its message alone."""
        if self.form == "json":
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            line: dict[str, Any] = {"time": now, "level": level.upper(), "run": self.run}
            line |= {"stage": stage, "event": event, "message": message, **fields}
            self._write(json.dumps(_clean(line), default=str) + "\n")
            return
        source = stage if level == "info" else f"{stage}: {level}"
        head = "spark-rank: " if stage is None else f"[{source}] "
        self._write(f"{self._wipe()}{head}{_clean(message)}\n")

    def draw(self, message: str, *, stage: str) -> None:
        """Show a line that the next one replaces; only on a terminal."""
        if self.draws:
            self._write(f"{self._wipe()}[{stage}] {_clean(message)}")

    def trace(self, trace: str) -> None:
        """Write the stack trace of an unexpected error."""
        if self.form == "text":
            self._write(redact(trace))

    def _wipe(self) -> str:
        return "\r\x1b[K" if self.draws else ""

    def _write(self, text: str) -> None:
        with self._writing:
            self._out().write(text)
            self._out().flush()

    def _out(self) -> TextIO:
        return self._stream or sys.stderr


def _clean(value: Any) -> Any:
    """Return a value, or all text within it, without secrets and control characters."""
    if isinstance(value, str):
        return visible(redact(value))
    if isinstance(value, dict):
        return {key: _clean(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(entry) for entry in value]
    return value


_log = EventLog()


def configure(form: Form, run: str | None = None) -> None:
    """Set the form of this process's events, and the run that they name."""
    _log.form, _log.run = form, run


def process_log() -> EventLog:
    """Return the log that all of this process writes to."""
    return _log


def emit(
    event: str, message: str, *, stage: str | None = None, level: Level = "info", **fields: Any
) -> None:
    """Write an event to this process's log."""
    _log.emit(event, message, stage=stage, level=level, **fields)
