"""Small JSON files that hold their own checksum, for no record lists them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def checked_text(told: Mapping[str, Any]) -> str:
    """Return the file's text."""
    return json.dumps({**told, "checksum": checksum(json.dumps(told))}, indent=2) + "\n"


def read_checked(text: str) -> dict[str, Any] | None:
    """Return what the file tells, or None if it is not as it was written."""
    try:
        told = json.loads(text)
        del told["checksum"]
    except (ValueError, KeyError, TypeError):
        return None
    return told if checked_text(told) == text else None


def checksum(text: str) -> str:
    """Return the checksum of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
