"""What ingest reads from outside the run: the files, and an earlier run's dictionaries."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame

from spark_rank.config import Config
from spark_rank.errors import ConfigError
from spark_rank.session.files import FileInfo
from spark_rank.stages.synthesize import synthetic_path
from spark_rank.store.run import Run
from spark_rank.tables.contract import Contract

_RUN_ROOT = re.compile(r"(.*)/runs/run_id=([^/]+)/?")


def input_files(config: Config, run: Run) -> list[FileInfo]:
    """Return the rating files, or raise `ConfigError`."""
    if config.input.path is None:
        return run.files.glob(synthetic_path(config, run))
    found = files_of("input.path", config.input.path, run)
    hidden = [info.path for info in found if info.path.rsplit("/", 1)[-1].startswith(("_", "."))]
    if hidden:
        raise ConfigError(
            f"input.path: {hidden[0]}: Spark passes over files whose names begin with '_' or '.': "
            "rename it"
        )
    return found


def files_of(key: str, path: str, run: Run) -> list[FileInfo]:
    """Return the files that the value of a key stands for, or raise `ConfigError`."""
    found = run.files.glob(path)
    if not found:
        raise ConfigError(
            f"{key}: {path}: no such file, directory or glob: check the path "
            "(a relative one starts where the command runs)"
        )
    return found


def known_numbers(config: Config, contract: Contract, run: Run) -> DataFrame | None:
    """Return the dictionary whose numbers are kept, or None."""
    earlier = _earlier_run(config, run)
    return None if earlier is None else earlier.read(contract)


def input_fingerprint(config: Config, run: Run) -> list[list[object]]:
    """Return what tells one input from another: files, and the run whose numbers are kept."""
    parts: list[list[object]] = []
    earlier = _earlier_run(config, run)
    if earlier is not None:
        record = earlier.record("ingest")
        parts.append(["dictionaries", record["fingerprint"] if record else None])
    files: list[FileInfo] = []
    if config.input.path is not None:  # else the fingerprint of `synthesize` stands for it
        files += input_files(config, run)
    if config.input.titles is not None:
        files += files_of("input.titles", config.input.titles, run)
    return [*parts, *[[info.path, info.size, info.modified_ms] for info in files]]


def _earlier_run(config: Config, run: Run) -> Run | None:
    named = config.input.dictionaries_from or config.previous
    if named is None:
        return None
    root = _RUN_ROOT.fullmatch(named)
    if root is None and "/" in named:
        raise ConfigError(
            f"input.dictionaries_from: {named}: is not the directory of a run: it ends in "
            "/runs/run_id=NAME; for a run of this store its id is enough"
        )
    return Run(run.spark, root[1], root[2]) if root else Run(run.spark, config.store, named)
