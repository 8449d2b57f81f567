"""Learners can be imported where neither the package nor the home can be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spark_rank

PACKAGE = Path(spark_rank.__file__).parent
IMPORT = """
import numba
from spark_rank.learners import MPRank
print(numba.config.CACHE_DIR)
"""


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package to which not even root can write caches."""
    copy = tmp_path / "site" / "spark_rank"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file in the place of the folder")
    return copy.parent


def cache_directory(site: Path, **environment: str) -> str:
    (site.parent / "temporary").mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items()
            if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}  # fmt: skip
    kept |= {"PYTHONPATH": str(site), "TMPDIR": str(site.parent / "temporary"), **environment}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT],
        env=kept,
        cwd=site,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_a_home_compiled_functions_are_kept_privately(locked: Path) -> None:
    place = Path(cache_directory(locked, HOME="/dev/null"))
    assert place.parent == locked.parent / "temporary"
    assert place.stat().st_mode & 0o777 == 0o700
    assert str(place) == cache_directory(locked, HOME="/dev/null")


def test_a_directory_that_others_can_write_is_not_trusted(locked: Path) -> None:
    place = Path(cache_directory(locked, HOME="/dev/null"))
    place.chmod(0o777)
    assert Path(cache_directory(locked, HOME="/dev/null")) != place


def test_a_better_place_is_left_to_numba(locked: Path, tmp_path: Path) -> None:
    assert cache_directory(locked, HOME=str(tmp_path)) == ""
    chosen = str(tmp_path / "chosen")
    assert cache_directory(locked, HOME="/dev/null", NUMBA_CACHE_DIR=chosen) == chosen
