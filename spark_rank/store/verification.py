"""Checks a run against its manifest: every file, every count, and how the stages hang together."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark_rank.errors import ContractError
from spark_rank.session.files import Files
from spark_rank.session.filesystem import java_reason
from spark_rank.store.catalogue import Records, readable_records
from spark_rank.store.containment import refuse_links
from spark_rank.store.drafts import FOLDER as DRAFTS
from spark_rank.store.footers import check_stored
from spark_rank.store.inventory import READERS, StoredFile, from_record, relative
from spark_rank.store.lease import FOLDER as LEASE
from spark_rank.store.needed_runs import FILE as NEEDED_RUNS
from spark_rank.store.run_metrics import FOLDER as METRICS_FOLDER
from spark_rank.store.run_metrics import is_intact
from spark_rank.store.run_records import RunRecords
from spark_rank.tables.contracts import TABLES

MISSING, CHANGED, FOREIGN, ROWS, RECORD = "missing", "changed", "foreign", "rows", "record"
_MANIFEST = "manifest"
# what stages and processes are at work on, and what holds its own checksum
_AT_WORK = (DRAFTS, LEASE)
_SELF_CHECKED = (f"{METRICS_FOLDER}/", NEEDED_RUNS)
# what Spark leaves beside tables: an empty file, and checksums that Hadoop looks at when it reads
_SUCCESS = "_SUCCESS"
_CHECKSUM_HEAD = b"crc\0"
# a small file that was being written when its process was killed: no glob of ours ends so
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.part")


@dataclass(frozen=True)
class Problem:
    """Something that is not as the manifest says."""

    kind: str
    path: str
    detail: str


@dataclass(frozen=True)
class Findings:
    """What a verification looked at, and what is wrong."""

    files: int
    tables: int
    problems: tuple[Problem, ...]


def verify(run: RunRecords) -> Findings:
    """Read every file of a run; rows are counted where the files are what they should be."""
    refuse_links(run.root)  # they may lead anywhere, round in circles too
    records, problems = _records(run)
    listed = {path: file for record in records.values()
              for path, file in from_record(record["files"]).items()}  # fmt: skip
    present = _present(run)
    for path in sorted(present.keys() - listed.keys()):
        if path.startswith(_SELF_CHECKED):
            problems += _check_self_checked(run, path)
        elif not _is_record(path) and not _is_left_by_spark(path, present):
            problems.append(Problem(FOREIGN, path, "no record lists it"))
    with ThreadPoolExecutor(READERS) as readers:
        checked = readers.map(lambda entry: _check_file(run, present, *entry), listed.items())
        problems += [problem for problem in checked if problem is not None]
    damaged = {problem.path.partition("/")[0] for problem in problems}
    tables = {table for record in records.values() for table in record["tables"]}
    for table in sorted(tables - damaged):
        problems += _check_rows(run, table)
    return Findings(len(listed) + len(records), len(tables), tuple(problems))


def _records(run: RunRecords) -> tuple[Records, list[Problem]]:
    records, damages = readable_records(run)
    problems = [Problem(RECORD, f"{_MANIFEST}/{stage}.json", damage)
                for stage, damage in damages.items()]  # fmt: skip
    for stage, record in records.items():
        for needed, fingerprint in record["upstream"].items():
            if needed in records and records[needed]["fingerprint"] != fingerprint:
                detail = f"was made from another {needed!r} than the run has"
                problems.append(Problem(RECORD, f"{_MANIFEST}/{stage}.json", detail))
    return records, problems


def _present(run: RunRecords) -> dict[str, int]:
    """Return all files of a run, hidden ones too, but those of a stage in progress."""
    found = {
        relative(info, run.root): info.size
        for name in run.files.names(run.root) if name not in _AT_WORK
        for info in run.files.below(run.path(name), hidden=True)
    }  # fmt: skip
    return {path: size for path, size in found.items() if not _UNFINISHED.fullmatch(_name(path))}


def _is_left_by_spark(path: str, present: dict[str, int]) -> bool:
    """Tell of a file beside the tables' own whether it is one of Spark's and Hadoop's."""
    name = _name(path)
    if name == _SUCCESS:
        return present[path] == 0
    beside = path.removesuffix(name) + name[1:].removesuffix(".crc")
    return path == _checksum_path(beside) and beside in present


def _checksum_path(path: str) -> str:
    """Return where a local disk has the checksums of a file, for Hadoop."""
    name = _name(path)
    return f"{path.removesuffix(name)}.{name}.crc"


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_record(path: str) -> bool:
    return path.startswith(f"{_MANIFEST}/") and path.endswith(".json")


def _check_self_checked(run: RunRecords, path: str) -> list[Problem]:
    """Return what is wrong with a file that no record lists and that holds its own checksum."""
    try:
        intact = is_intact(run.files.read_text(run.path(path)))
    except UnicodeDecodeError:
        intact = False
    return [] if intact else [Problem(CHANGED, path, "is not as it was written")]


def _check_file(
    run: RunRecords, present: dict[str, int], path: str, expected: StoredFile
) -> Problem | None:
    if path not in present:
        return Problem(MISSING, path, "the manifest lists it")
    if present[path] != expected.size:
        detail = f"has {present[path]:,} bytes, the manifest says {expected.size:,}"
        return Problem(CHANGED, path, detail)
    sums = _checksum_path(path)
    # Hadoop reads over a damaged head; Spark's reader of Parquet does not
    if sums in present and run.files.head(run.path(sums), len(_CHECKSUM_HEAD)) != _CHECKSUM_HEAD:
        return Problem(CHANGED, path, "its file of checksums is damaged")
    checksum = _checksum(run.files, run.path(path))
    return None if checksum == expected.sha256 else Problem(CHANGED, path, f"SHA-256: {checksum}")


def _checksum(files: Files, path: str) -> str:
    try:
        return files.sha256(path)
    except (Py4JJavaError, PySparkException, OSError) as error:
        # local files have checksums of Hadoop's own beside them, which refuse first
        return f"cannot be read ({java_reason(error)})"


def _check_rows(run: RunRecords, table: str) -> list[Problem]:
    contract = TABLES.get(table)
    if contract is None:
        return [Problem(ROWS, table, "is no table of this version")]
    try:
        check_stored(run.files, run.path(table), contract, run.rows(contract))
    except ContractError as error:
        return [Problem(ROWS, table, str(error))]
    except (Py4JJavaError, PySparkException, OSError, pa.ArrowInvalid) as error:
        return [Problem(ROWS, table, f"cannot be read ({java_reason(error)})")]
    return []
