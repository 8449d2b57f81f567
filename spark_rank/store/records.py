"""The text of a stage's record: JSON that holds its own checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from spark_rank.errors import ContractError

REMEDY = ": start a new run with --set run_id=NAME"
_KEYS = ("fingerprint", "tables", "facts", "message", "files", "checksum")


def record_text(record: Mapping[str, Any]) -> str:
    """Return the text of a record; `record` is as JSON has it."""
    return _as_text({**record, "checksum": _checksum(record)})


def checked_record(path: str, text: str) -> dict[str, Any]:
    """Return the record that a file's text tells, or raise `ContractError` naming the file."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad_record(path, (str(error).splitlines() or ["(no message)"])[0]) from None
    if not isinstance(record, dict):
        raise bad_record(path, f"it holds a {type(record).__name__}")
    missing = [key for key in _KEYS if key not in record]
    if missing:
        raise bad_record(path, f"it has no {missing[0]!r}")
    given = record.pop("checksum")
    # the text too: another last digit of a number may be read as the same number
    if given != _checksum(record) or text != _as_text({**record, "checksum": given}):
        raise bad_record(path, "it is not as it was written")
    return record


def bad_record(path: str, reason: str) -> ContractError:
    """Return the error that names a record that cannot be used."""
    return ContractError(
        f"{path}: not a valid stage record ({reason}): delete it to run the stage again"
    )


def _as_text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, indent=2, sort_keys=True) + "\n"


def _checksum(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(_as_text(record).encode()).hexdigest()
