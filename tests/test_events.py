"""Events as lines and as JSON lines: whole, clean, without secrets."""

from __future__ import annotations

import io
import json
from datetime import datetime

import pytest

from spark_rank import events, redaction
from spark_rank.events import EventLog


@pytest.fixture(autouse=True)
def one_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_remembered", set())
    redaction.remember({"spark.hadoop.fs.s3a.secret.key": 'hunter2"secret'})


def told(form: events.Form, *messages: str, **more: object) -> str:
    stream = io.StringIO()
    log = EventLog(form, stream)
    log.run = "monday"
    for message in messages:
        log.emit("happened", message, stage="train", **more)  # type: ignore[arg-type]
    return stream.getvalue()


def test_lines_for_people() -> None:
    assert told("text", "done", users=3) == "[train] done\n"
    assert told("text", "odd", level="warning") == "[train: warning] odd\n"
    stream = io.StringIO()
    EventLog(stream=stream).emit("failed", "no such file", level="error", exit_code=2)
    assert stream.getvalue() == "spark-rank: no such file\n"


def test_json_lines_have_the_same_keys_first() -> None:
    line = json.loads(told("json", "done", users=3, rows={"models": 4}))
    assert list(line) == ["time", "level", "run", "stage", "event", "message", "users", "rows"]
    assert datetime.fromisoformat(line["time"]).tzinfo is not None
    assert (line["run"], line["level"], line["rows"]) == ("monday", "INFO", {"models": 4})


@pytest.mark.parametrize("form", events.FORMS)
def test_a_message_is_one_line_without_secrets_and_steering(form: events.Form) -> None:
    text = told(form, 'a\nb\x1b[2J\u202e hunter2"secret', detail={"x": ['hunter2"secret']})
    assert text.count("\n") == 1
    assert "hunter2" not in text
    assert "(redacted)" in text
    assert not {"\x1b", "\u202e"} & set(text)


def test_a_trace_is_for_people_and_has_no_secret() -> None:
    stream = io.StringIO()
    log = EventLog(stream=stream)
    log.trace('Traceback\n  login("hunter2"secret")\n')
    assert stream.getvalue().startswith("Traceback\n")
    assert "hunter2" not in stream.getvalue()
    log.form = "json"  # there it is a field of the event
    log.trace("more")
    assert "more" not in stream.getvalue()


def test_nothing_is_drawn_where_nobody_watches() -> None:
    stream = io.StringIO()
    EventLog(stream=stream).draw("half", stage="train")
    assert stream.getvalue() == ""
