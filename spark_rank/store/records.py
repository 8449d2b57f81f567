"""The text of a stage's record: JSON with its own checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from spark_rank.errors import ContractError

REMEDY = ": start a new run with --set run_id=NAME"
_KEYS = ("fingerprint", "tables", "facts", "message", "files", "checksum")


def record_text(record: Mapping[str, Any]) -> str:
    """Return the text of a record; `record` holds only values that JSON has."""
    return _as_text({**record, "checksum": _checksum(record)})


def checked_record(path: str, text: str) -> dict[str, Any]:
    """Return the record in a file's text, or raise `ContractError` naming the file."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad_record(path, (str(error).splitlines() or ["(no message)"])[0]) from None
    if not isinstance(record, dict):
        raise bad_record(path, f"it contains a {type(record).__name__}")
    missing = [key for key in _KEYS if key not in record]
    if missing:
        raise bad_record(path, f"it has no {missing[0]!r}")
    stored_checksum = record.pop("checksum")
    # compare the text too: two numbers that differ in the last digit may be read as one
    unchanged_text = _as_text({**record, "checksum": stored_checksum})
    if stored_checksum != _checksum(record) or text != unchanged_text:
        raise bad_record(path, "it was changed after it was written")
    return record


def bad_record(path: str, reason: str) -> ContractError:
    """Return the error for a record that cannot be used."""
    return ContractError(
        f"{path}: not a valid stage record ({reason}): delete it to run the stage again"
    )


def _as_text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, indent=2, sort_keys=True) + "\n"


def _checksum(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(_as_text(record).encode()).hexdigest()
