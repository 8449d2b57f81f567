"""What a run has left, in a form that can be compared with another run's."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Bytes = dict[str, Counter[str]]
# what tells how long something took, where and when, and the names of Spark's files
TOLD_OF_THE_RUN = ["manifest", "report", "run_metrics"]
DECIDED = ("fingerprint", "upstream", "inputs", "settings", "seed", "message", "tables", "versions")


def names(run: Path) -> list[str]:
    """Return the names of all that readers see of a run."""
    return sorted(path.name for path in run.iterdir() if not path.name.startswith(("_", ".")))


def table_bytes(folder: Path) -> Bytes:
    """Return the checksums of a table's files, by partition; Spark names files by chance."""
    found: Bytes = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(("_", ".")):
            content = parquet_bytes(path) if path.suffix == ".parquet" else path.read_bytes()
            checksum = hashlib.sha256(content).hexdigest()
            found.setdefault(str(path.parent.relative_to(folder)), Counter())[checksum] += 1
    return found


def parquet_bytes(path: Path) -> bytes:
    """Return a Parquet file's bytes, with the encodings of a column sorted in the footer.

    The JVM's Parquet writer lists them in the order of a hash that is another one in every process.
    """
    data = path.read_bytes()
    footer = 8 + int.from_bytes(data[-8:-4], "little")
    metadata = pq.read_metadata(path)
    tree = metadata.to_dict()
    for group in tree["row_groups"]:
        for column in group["columns"]:
            column["encodings"] = sorted(column["encodings"])
    told = [tree, sorted(metadata.metadata.items()), str(metadata.schema.to_arrow_schema()), footer]
    return data[:-footer] + repr(told).encode()


def differences(run: Path, other: Path, tables: list[str]) -> list[str]:
    """Return the tables that are not the same, byte by byte."""
    return [name for name in tables if table_bytes(run / name) != table_bytes(other / name)]


def records(run: Path) -> dict[str, dict[str, Any]]:
    """Return the manifest, without what may differ."""
    found = {path.stem: json.loads(path.read_text()) for path in run.glob("manifest/*.json")}
    # the page is told by its place
    found["report"]["message"] = ""
    return {stage: {key: record[key] for key in DECIDED} for stage, record in found.items()}


def page(run: Path) -> str:
    """Return the report without how long the stages took, and when."""
    text = (run / "report" / "report.html").read_text()
    shown, pictures = re.subn(
        r'<figure>(<div[^>]*>)?<svg role="img" aria-label="Seconds by stage.*?</figure>',
        "",
        text,
        flags=re.S,
    )
    shown, rows = re.subn(
        r'<td>[\d.]+</td><td>\d+ %</td><td class="text">20[\dT:+-]+</td>', "", shown
    )
    # the page cannot tell of itself
    assert (pictures, rows) == (1, len([*run.glob("manifest/*.json")]) - 1)
    return shown
