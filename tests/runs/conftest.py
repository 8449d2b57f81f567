"""Commands that look at a store, as they are typed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_rank import cli

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "test.yaml"
    path.write_text(f"store: {tmp_path / 'store'}\nspark: {{spark.master: 'local[2]'}}\n")
    return path


@pytest.fixture
def asking(
    config: Path,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[str], Ask]:
    """Return what asks a command, such as ``runs``: exit code and both streams."""

    def of(command: str) -> Ask:
        def run(*words: str) -> tuple[int, str, str]:
            capsys.readouterr()
            code = cli.main([command, *words, "--config", str(config)])
            said = capsys.readouterr()
            return code, said.out, said.err

        return run

    return of
