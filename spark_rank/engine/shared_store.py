"""Sees that the executors of a cluster and the driver write into the same store.

A store on `file:` is a directory of every machine. If it is not the same one, Spark notices
nothing: executors write onto their own disks, and the driver publishes what it finds, nothing.
"""

from __future__ import annotations

import re
import secrets
import socket
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from spark_rank.engine.progress import job_description
from spark_rank.engine.store import Run
from spark_rank.errors import ConfigError

# a network's file system may show a new file a moment later
_PATIENCE = 3.0
# so that every core has some of them: Spark promises no task to any executor
_TASKS_PER_CORE = 4


def check_store_is_shared(run: Run) -> None:
    """Raise `ConfigError` if an executor does not see a file that the driver has just written."""
    if str(run.spark.sparkContext.master).startswith("local") or not run.root.startswith("file:"):
        return
    probe = run.path(f"_probe-{secrets.token_hex(8)}")
    run.files.write_text(probe, "seen by every executor\n")
    try:
        with job_description(run.spark, f"{run.run_id}: is the store shared?"):
            blind = _hosts_without(run.spark, re.sub("^file:(//)?", "", probe))
    finally:
        run.files.delete(probe)
    if blind:
        raise ConfigError(
            f"store {run.root}: {', '.join(blind)} does not see what the driver writes there: name "
            "a directory that is the same on every machine, such as one of NFS, or hdfs:, s3a:"
        )


def _hosts_without(spark: SparkSession, path: str) -> list[str]:
    tasks = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    found = spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(
        partial(missing_here, path=path)
    )
    return sorted(set(found.collect()))


def missing_here(_: Iterable[int], path: str, patience: float = _PATIENCE) -> Iterator[str]:
    """Yield this host's name if it does not see the file."""
    end = time.monotonic() + patience
    while not Path(path).exists():
        if time.monotonic() > end:
            yield socket.gethostname()
            return
        time.sleep(0.2)
