"""A tracking that cannot work is refused before anything is computed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_rank import cli
from spark_rank.config import load_config
from spark_rank.errors import ConfigError

Refused = Callable[..., str]


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Refused:
    """Return what starts a command that must end with exit code 2, and returns its line."""

    def start(command: str, *sets: str) -> str:
        started = "spark_rank.stages.execution.spark_session"
        monkeypatch.setattr(started, lambda *_: pytest.fail("Spark was started"))
        store = tmp_path / "store"
        assert cli.main([command, "--set", f"store={store}", *sets]) == 2
        assert not store.exists()
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return start


def test_a_missing_package_is_told_at_once(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    for command in ("pipeline", "track"):
        line = refused(command, "tracking.mlflow=sqlite:///mlflow.db")
        assert "MLflow is not installed: `pip install mlflow-skinny`" in line


def test_without_an_address_there_is_nothing_to_send(refused: Refused) -> None:
    assert "--set tracking.mlflow=URI" in refused("track")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("mlflow", "https://me:secret-7@host/", "MLFLOW_TRACKING_PASSWORD"),
        ("mlflow", "https://host/?token=secret-7", "MLFLOW_TRACKING_PASSWORD"),
        ("mlflow", " ", "must not be empty"),
        ("experiment", "", "must not be empty"),
    ],
)
def test_an_address_that_cannot_be_shown_is_refused(key: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as raised:
        load_config(None, [f"tracking.{key}={value}"])
    assert "secret-7" not in str(raised.value)
