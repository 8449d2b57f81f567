"""The wheel is enough: commands work in a directory that has nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from spark_rank.config import load_config, to_yaml
from spark_rank.packaging.package import build_wheel

LONGEST = 600.0


@pytest.mark.slow
@pytest.mark.timeout(3 * LONGEST)
def test_commands_need_nothing_but_the_wheel(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path)
    installed, empty = tmp_path / "installed", tmp_path / "empty"
    zipfile.ZipFile(wheel).extractall(installed)
    empty.mkdir()

    def run(*arguments: str) -> str:
        ended = subprocess.run(
            [sys.executable, "-m", "spark_rank", *arguments], cwd=empty, capture_output=True,
            text=True, timeout=LONGEST, check=False,
            env={**os.environ, "PYTHONPATH": str(installed)},
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert yaml.safe_load(run("config")) == yaml.safe_load(to_yaml(load_config(None)))
    store = tmp_path / "store"
    assert run("runs", "list", "--set", f"store={store}") == f"no runs in {store}\n"
    data = f"experiment.data={tmp_path / 'nowhere'}"
    assert "report" in run("reproduce", "bounds", "--set", f"store={store}", data)
    assert [path.name for path in empty.iterdir()] == []
