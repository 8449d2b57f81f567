"""Finds Spark's JVM part: an installation, or the one inside the Python package pyspark."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark

from spark_rank.errors import RuntimeMissingError


def spark_home() -> Path:
    """Return SPARK_HOME, or the package pyspark if it has Spark's jars; else raise."""
    named = os.environ.get("SPARK_HOME")
    if named:
        return Path(named)
    package = Path(pyspark.__file__).parent
    if (package / "jars").is_dir():
        return package
    raise RuntimeMissingError(
        f"{package} has no jars, as in a packed environment: start the job with spark-submit, or "
        "set SPARK_HOME to the directory where Spark is installed"
    )
