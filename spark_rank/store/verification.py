"""Checks a run against its manifest: every file, every row count, and what stages depend on."""

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
from spark_rank.store.self_checked import DEMO_PAGE, is_checked_page
from spark_rank.tables.contracts import TABLES

MISSING, CHANGED, FOREIGN, ROWS, RECORD = "missing", "changed", "foreign", "rows", "record"
_MANIFEST = "manifest"
# folders that change while a stage runs, and files with their own checksums
_AT_WORK = (DRAFTS, LEASE)
_SELF_CHECKED = (f"{METRICS_FOLDER}/", NEEDED_RUNS, DEMO_PAGE)
# what Spark leaves beside tables: an empty file, and checksums that Hadoop checks when it reads
_SUCCESS = "_SUCCESS"
_CHECKSUM_HEAD = b"crc\0"
# a small file that was being written when its process was killed; no reader's glob matches it
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.part")


@dataclass(frozen=True)
class Problem:
    """A difference between the run and its manifest."""

    kind: str
    path: str
    detail: str


@dataclass(frozen=True)
class Findings:
    """How much a verification checked, and what is wrong."""

    files: int
    tables: int
    problems: tuple[Problem, ...]


def verify(run: RunRecords) -> Findings:
    """Read every file of a run; count the rows of tables whose files are intact."""
    refuse_links(run.root)  # a link may lead anywhere, in circles too
    records, problems = _records(run)
    listed = {path: file for record in records.values()
              for path, file in from_record(record["files"]).items()}  # fmt: skip
    present = _present(run)
    for path in sorted(present.keys() - listed.keys()):
        if path.startswith(_SELF_CHECKED):
            problems += _check_self_checked(run, path)
        elif not _is_record(path) and not _is_left_by_spark(path, present):
            problems.append(Problem(FOREIGN, path, "is not in the manifest"))
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
                detail = f"was made from a different result of {needed!r} than the run has"
                problems.append(Problem(RECORD, f"{_MANIFEST}/{stage}.json", detail))
    return records, problems


def _present(run: RunRecords) -> dict[str, int]:
    """Return the sizes of a run's files, hidden ones too, without those of a stage in progress."""
    sizes = {
        relative(info, run.root): info.size
        for name in run.files.names(run.root) if name not in _AT_WORK
        for info in run.files.below(run.path(name), hidden=True)
    }  # fmt: skip
    return {path: size for path, size in sizes.items() if not _UNFINISHED.fullmatch(_name(path))}


def _is_left_by_spark(path: str, present: dict[str, int]) -> bool:
    """Tell whether a file that no record lists is one that Spark or Hadoop writes."""
    name = _name(path)
    if name == _SUCCESS:
        return present[path] == 0
    beside = path.removesuffix(name) + name[1:].removesuffix(".crc")
    return path == _checksum_path(beside) and beside in present


def _checksum_path(path: str) -> str:
    """Return the path of Hadoop's checksum file beside a file of a local disk."""
    name = _name(path)
    return f"{path.removesuffix(name)}.{name}.crc"


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_record(path: str) -> bool:
    return path.startswith(f"{_MANIFEST}/") and path.endswith(".json")


def _check_self_checked(run: RunRecords, path: str) -> list[Problem]:
    """Return what is wrong with a file that has its own checksum and no record."""
    try:
        text = run.files.read_text(run.path(path))
        intact = is_checked_page(text) if path == DEMO_PAGE else is_intact(text)
    except UnicodeDecodeError:
        intact = False
    return [] if intact else [Problem(CHANGED, path, "was changed after it was written")]


def _check_file(
    run: RunRecords, present: dict[str, int], path: str, expected: StoredFile
) -> Problem | None:
    if path not in present:
        return Problem(MISSING, path, "is in the manifest but not in the run")
    if present[path] != expected.size:
        detail = f"has {present[path]:,} bytes, the manifest says {expected.size:,}"
        return Problem(CHANGED, path, detail)
    sums = _checksum_path(path)
    # Hadoop ignores a damaged header; Spark's Parquet reader does not
    if sums in present and run.files.head(run.path(sums), len(_CHECKSUM_HEAD)) != _CHECKSUM_HEAD:
        return Problem(CHANGED, path, "its checksum file is damaged")
    checksum = _checksum(run.files, run.path(path))
    return None if checksum == expected.sha256 else Problem(CHANGED, path, f"SHA-256: {checksum}")


def _checksum(files: Files, path: str) -> str:
    try:
        return files.sha256(path)
    except (Py4JJavaError, PySparkException, OSError) as error:
        # Hadoop refuses to read a local file that differs from Hadoop's own checksums
        return f"cannot be read ({java_reason(error)})"


def _check_rows(run: RunRecords, table: str) -> list[Problem]:
    contract = TABLES.get(table)
    if contract is None:
        return [Problem(ROWS, table, "is not a table of this version")]
    try:
        check_stored(run.files, run.path(table), contract, run.rows(contract))
    except ContractError as error:
        return [Problem(ROWS, table, str(error))]
    except (Py4JJavaError, PySparkException, OSError, pa.ArrowInvalid) as error:
        return [Problem(ROWS, table, f"cannot be read ({java_reason(error)})")]
    return []
