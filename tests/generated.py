"""Runs on generated ratings, begun by a copy of what another test's run has begun with.

The first stages of equal configurations leave equal files, and take seconds each time. What one
process of the test run has made is there for the others.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run

_PREFIX = ("synthesize", "ingest", "prepare")
# no result may depend on these: tests that change them want a run of their own
_RUNTIME = (
    "spark.sql.shuffle.partitions",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.maxPartitionBytes",
)
_own = tempfile.TemporaryDirectory(prefix="generated-")
_shared = [_own.name]


def share(folder: str) -> None:
    """Keep copies where other processes of the test run keep theirs."""
    _shared[:] = [folder]


def shared_folder() -> str:
    """Return where copies are kept."""
    return _shared[0]


def keep_copy(folder: Path, key: str) -> None:
    """Keep a copy of a run, whole or not at all; the first one stays."""
    kept = _kept(key)
    if not kept.exists():
        made = Path(tempfile.mkdtemp(dir=shared_folder())) / "run"
        shutil.copytree(folder, made)
        try:
            made.rename(kept)
        except OSError:  # another process was faster
            assert kept.exists()


def copy_kept(key: str, folder: Path) -> bool:
    """Put the copy that is kept into a folder which is not there yet; False without one."""
    kept = _kept(key)
    if not kept.exists():
        return False
    shutil.copytree(kept, folder)
    return True


def _kept(key: str) -> Path:
    return Path(shared_folder(), hashlib.sha256(key.encode()).hexdigest())


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
        if not folder.exists():
            copy_kept(keys[name], folder)
    for number, name in enumerate(stages):
        if run.record(name) is None:
            run_stages([STAGES[name]], config, spark, run)
            if number > 0:
                keep_copy(folder, keys[name])
    return run


def _key(spark: SparkSession, config: Config, name: str) -> str:
    settings = [config.synthesize, config.input, *([config.prepare] if name == "prepare" else [])]
    return repr([name, config.seed, settings, [spark.conf.get(each, None) for each in _RUNTIME]])
