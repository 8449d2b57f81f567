"""The examples run, and the page about them shows what they do."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "from-als.md").read_text()


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["with_als", "with_per_user_ranker"])
def test_the_page_shows_the_lines_of_the_example(name: str) -> None:
    section = PAGE.split(f"(`examples/{name}.py`)")[1]
    block = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]
    source = [line.strip() for line in (ROOT / "examples" / f"{name}.py").read_text().splitlines()]
    lines = [line for line in block.splitlines() if line]
    assert len(lines) > 10
    assert [line for line in lines if line not in source] == []


@pytest.mark.slow
def test_generated_ratings_become_lists(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = example("with_per_user_ranker")
    ratings = module.ratings_of(spark, None)
    rmse, lists = module.run(ratings, str(tmp_path / "model"))
    assert 0.0 < rmse < 3.0
    assert lists.count() == 80


@pytest.mark.slow
def test_real_ratings_are_predicted_better_than_by_als(data_file: Callable[[str], Path]) -> None:
    path = str(data_file("ml-100k/u.data"))
    # ALS takes a deeper stack than the JVM of the tests has
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_SUBMIT_OPTS": "-Xss4m",
                   "PYSPARK_PYTHON": sys.executable}  # fmt: skip
    errors = {}
    for name in ("with_als", "with_per_user_ranker"):
        command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), path]
        told = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout
        errors[name] = float(told.split("root mean squared error")[1])
    assert errors["with_per_user_ranker"] < errors["with_als"]
