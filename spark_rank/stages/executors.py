"""Checks, before a run on a cluster, that the executors have the driver's software and store.

Other versions would learn other models without an error. A store on `file:` must be the same
directory on every machine: otherwise executors write to their own disks, and the driver publishes
empty tables, without an error from Spark.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from py4j.protocol import Py4JJavaError

import spark_rank
from spark_rank.errors import ConfigError, RuntimeMissingError
from spark_rank.session.progress import job_description
from spark_rank.store.run import Run

# seconds; a network file system may show a new file with a delay
_PATIENCE = 3.0
# several, because Spark does not promise every executor a task
_TASKS_PER_CORE = 4
_PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "pandas")
_UNUSABLE = re.compile(r"Cannot run program .+|PYTHON_VERSION_MISMATCH.+|ModuleNotFoundError: .+")
_REMEDY = (
    "give executors and driver the environment that `make package` packs, with --archives and "
    "PYSPARK_PYTHON"
)


@dataclass(frozen=True)
class ExecutorFacts:
    """An executor's software versions by name, and whether it sees the driver's file."""

    host: str
    software: tuple[tuple[str, str], ...]
    sees_store: bool


def check_executors(run: Run) -> None:
    """Raise an error that names the machine if an executor differs from the driver."""
    context = run.spark.sparkContext
    if str(context.master).startswith("local"):
        return
    probe = run.path(f"_probe-{secrets.token_hex(8)}") if run.root.startswith("file:") else None
    if probe is not None:
        run.files.write_text(probe, "seen by every executor\n")
    tasks = _TASKS_PER_CORE * context.defaultParallelism
    look = partial(executor_facts, path=None if probe is None else re.sub("^file:(//)?", "", probe))
    try:
        with job_description(run.spark, f"{run.run_id}: check of the executors"):
            executors = context.parallelize(range(tasks), tasks).mapPartitions(look).collect()
    except Py4JJavaError as error:
        reason = _UNUSABLE.search(str(error))
        if reason is None:
            raise
        raise RuntimeMissingError(f"executors cannot work: {reason[0]}: {_REMEDY}") from None
    finally:
        if probe is not None:
            run.files.delete(probe)
    check_executor_facts(executors, software(), run.root)


def check_executor_facts(
    executors: Sequence[ExecutorFacts], driver: tuple[tuple[str, str], ...], root: str
) -> None:
    """Raise `ConfigError` if an executor has other versions than the driver, or another store."""
    for one in sorted(set(executors), key=lambda one: one.host):
        for (name, theirs), (_, ours) in zip(one.software, driver, strict=True):
            if theirs != ours:
                raise ConfigError(
                    f"executors on {one.host} have {name} {theirs}, the driver has {ours}: "
                    f"{_REMEDY}"
                )
    blind = sorted({one.host for one in executors if not one.sees_store})
    if blind:
        raise ConfigError(
            f"store {root}: {', '.join(blind)} does not see the driver's files there: use a "
            "directory that all machines share, such as NFS, or hdfs:, s3a:"
        )


def executor_facts(
    _: Iterable[int], path: str | None, patience: float = _PATIENCE
) -> Iterator[ExecutorFacts]:
    """Yield the facts of this process; wait up to `patience` seconds for the file at `path`."""
    end = time.monotonic() + patience
    while not (seen := path is None or Path(path).exists()) and time.monotonic() < end:
        time.sleep(0.2)
    yield ExecutorFacts(socket.gethostname(), software(), seen)


def software() -> tuple[tuple[str, str], ...]:
    """Return the versions of the packages that decide a result; of this one, with a checksum."""
    return ("spark_rank", _sources()), *((name, _installed(name)) for name in _PACKAGES)


def _sources() -> str:
    folder = Path(spark_rank.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder)} {content}\n".encode())
    return f"{spark_rank.__version__} ({digest.hexdigest()[:12]})"


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
