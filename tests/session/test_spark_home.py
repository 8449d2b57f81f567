"""Where Spark is, and what is said where it is not."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from spark_rank.errors import RuntimeMissingError
from spark_rank.session.event_logs import history_command
from spark_rank.session.spark_home import spark_home


def test_an_installation_that_is_named_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert spark_home() == Path("/opt/spark")
    command, environment = history_command("file:/logs", 18080)
    assert command[0] == "/opt/spark/bin/spark-class"
    assert environment["SPARK_HOME"] == "/opt/spark"


def test_the_package_has_one_unless_its_jars_were_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert spark_home() == Path(pyspark.__file__).parent
    monkeypatch.setattr(pyspark, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(RuntimeMissingError, match=r"has no jars.*with spark-submit, or set SPARK_"):
        spark_home()
