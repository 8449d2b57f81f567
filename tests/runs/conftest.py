"""Commands that look at a store, as they are typed, in the session that all tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_rank import cli

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "test.yaml"
    path.write_text(f"store: {tmp_path / 'store'}\nspark: {{spark.master: 'local[2]'}}\n")
    return path


@pytest.fixture
def asking(
    spark: SparkSession,
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[str], Ask]:
    """Return what asks a command, such as ``runs``: exit code and both streams."""

    @contextmanager
    def shared(name: str, settings: Any) -> Iterator[SparkSession]:
        yield spark

    for module in ("commands", "planning"):
        monkeypatch.setattr(f"spark_rank.runs.{module}.spark_session", shared)

    def of(command: str) -> Ask:
        def run(*words: str) -> tuple[int, str, str]:
            capsys.readouterr()
            code = cli.main([command, *words, "--config", str(config)])
            said = capsys.readouterr()
            return code, said.out, said.err

        return run

    return of
