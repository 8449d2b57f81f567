"""The pointer to the promoted run that consumers read: a small file, replaced atomically."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from spark_rank.errors import ContractError
from spark_rank.session.files import Files
from spark_rank.store.run_records import RunRecords

FILE = "latest.json"


def promoted_run(files: Files, store: str) -> str | None:
    """Return the id of the run that the pointer names, or None."""
    path = pointer_path(store)
    if not files.exists(path):
        return None
    try:
        return str(json.loads(files.read_text(path))["run_id"])
    except (ValueError, KeyError, TypeError):
        raise ContractError(
            f"{path}: does not name a run: write it again with `spark-rank runs promote`"
        ) from None


def point_to(run: RunRecords, store: str) -> str:
    """Write the pointer to a run; return the pointer's path."""
    path = pointer_path(store)
    pointer = {
        "run_id": run.run_id,
        "path": run.root.removeprefix("file:"),
        "promoted": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    run.files.write_text(path, json.dumps(pointer, indent=2) + "\n")
    return path


def pointer_path(store: str) -> str:
    """Return the path of a store's pointer."""
    return f"{store.rstrip('/')}/{FILE}"
