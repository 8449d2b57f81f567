"""Runs on generated ratings, begun by a copy of what another test's run has begun with.

The first stages of equal configurations leave equal files, and take seconds each time.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.engine.runner import run_stages
from spark_rank.engine.store import Run
from spark_rank.stages import STAGES

_PREFIX = ("synthesize", "ingest", "prepare")
# no result may depend on these: tests that change them want a run of their own
_RUNTIME = (
    "spark.sql.shuffle.partitions",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.maxPartitionBytes",
)
_kept = tempfile.TemporaryDirectory(prefix="generated-")
_copies: dict[str, Path] = {}


def generated_run(spark: SparkSession, config: Config, last: str = "prepare") -> Run:
    """Return the run of a configuration, with its stages up to `last` done.

    Nothing is done where ratings are not generated into the run itself.
    """
    run = Run(spark, config.store, config.run_id)
    elsewhere = (config.input.path, config.synthesize.path, config.previous)
    if any(place is not None for place in (*elsewhere, config.input.dictionaries_from)):
        return run
    folder = Path(run.root.removeprefix("file:"))
    stages = _PREFIX[: _PREFIX.index(last) + 1]
    keys = {name: _key(spark, config, name) for name in stages[1:]}
    for name in reversed(keys):
        if keys[name] in _copies and not folder.exists():
            shutil.copytree(_copies[keys[name]], folder)
    for number, name in enumerate(stages):
        if run.record(name) is None:
            run_stages([STAGES[name]], config, spark, run)
            if number > 0 and keys[name] not in _copies:
                _copies[keys[name]] = Path(_kept.name, str(len(_copies)))
                shutil.copytree(folder, _copies[keys[name]])
    return run


def _key(spark: SparkSession, config: Config, name: str) -> str:
    settings = [config.synthesize, config.input, *([config.prepare] if name == "prepare" else [])]
    return repr([name, config.seed, settings, [spark.conf.get(each, None) for each in _RUNTIME]])
