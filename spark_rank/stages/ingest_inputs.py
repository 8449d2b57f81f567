"""The inputs of `ingest` from outside the run: files, and the dictionaries of an earlier run."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame

from spark_rank.config import Config, InputConfig
from spark_rank.config.schema import PARTS
from spark_rank.errors import ConfigError
from spark_rank.session.files import FileInfo
from spark_rank.stages.synthesize import synthetic_path
from spark_rank.store.run import Run
from spark_rank.tables.contract import Contract

# the keys of the paths, in the order of `PARTS`
_PATHS = ("path", "validation_path", "test_path")
_RUN_ROOT = re.compile(r"(.*)/runs/run_id=([^/]+)/?")


def input_files(config: Config, run: Run) -> list[FileInfo]:
    """Return the rating files, or raise `ConfigError`."""
    if config.input.path is None:
        return run.files.glob(synthetic_path(config, run))
    return [info for files in _parted_files(config.input, run).values() for info in files]


def parts_of_files(config: Config, run: Run) -> dict[str, int]:
    """Return the part of every file of a given split, by path; empty if no files are parts."""
    files = _parted_files(config.input, run) if config.input.path is not None else {}
    if len(files) < 2:
        return {}
    part_of: dict[str, int] = {}
    for part, infos in files.items():
        for info in infos:
            if info.path in part_of:
                raise ConfigError(
                    f"input.{_PATHS[part]}: {info.path} is in the part "
                    f"{PARTS[part_of[info.path]]!r} too: name every file once"
                )
            part_of[info.path] = part
    return part_of


def _parted_files(settings: InputConfig, run: Run) -> dict[int, list[FileInfo]]:
    """Return the files at every path that is set, by the number of the part."""
    found = {}
    for part, key in enumerate(_PATHS):
        path = getattr(settings, key)
        if path is not None:
            found[part] = _rating_files(f"input.{key}", path, run)
    return found


def _rating_files(key: str, path: str, run: Run) -> list[FileInfo]:
    files = files_of(key, path, run)
    hidden = [info.path for info in files if info.path.rsplit("/", 1)[-1].startswith(("_", "."))]
    if hidden:
        raise ConfigError(
            f"{key}: {hidden[0]}: Spark ignores files whose names begin with '_' or '.': rename it"
        )
    return files


def files_of(key: str, path: str, run: Run) -> list[FileInfo]:
    """Return the files at the path of a key, or raise `ConfigError`."""
    files = run.files.glob(path)
    if not files:
        raise ConfigError(
            f"{key}: {path}: no such file, directory or glob: check the path "
            "(a relative path starts in the working directory of the command)"
        )
    return files


def known_numbers(config: Config, contract: Contract, run: Run) -> DataFrame | None:
    """Return the earlier run's dictionary whose numbers are kept, or None."""
    earlier = _earlier_run(config, run)
    return None if earlier is None else earlier.read(contract)


def input_fingerprint(config: Config, run: Run) -> list[list[object]]:
    """Return what identifies the input: the files, and the run whose numbers are kept."""
    parts: list[list[object]] = []
    earlier = _earlier_run(config, run)
    if earlier is not None:
        record = earlier.record("ingest")
        parts.append(["dictionaries", record["fingerprint"] if record else None])
    files: list[FileInfo] = []
    if config.input.path is not None:  # else the fingerprint of `synthesize` identifies it
        files += input_files(config, run)
    for key, path in (("input.titles", config.input.titles), ("input.items", config.input.items)):
        if path is not None:
            files += files_of(key, path, run)
    return [*parts, *[[info.path, info.size, info.modified_ms] for info in files]]


def _earlier_run(config: Config, run: Run) -> Run | None:
    named = config.input.dictionaries_from or config.previous
    if named is None:
        return None
    root = _RUN_ROOT.fullmatch(named)
    if root is None and "/" in named:
        raise ConfigError(
            f"input.dictionaries_from: {named}: is not the directory of a run: give a path that "
            "ends in /runs/run_id=NAME, or the id of a run in this store"
        )
    return Run(run.spark, root[1], root[2]) if root else Run(run.spark, config.store, named)
