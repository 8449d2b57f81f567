"""Files with their own checksum, because no record lists them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

# what the command demo writes
DEMO_PAGE = "demo/index.html"
_PAGE_MARK = "<!-- checksum "


def checked_text(content: Mapping[str, Any]) -> str:
    """Return the text of a file with some content and its checksum."""
    return json.dumps({**content, "checksum": checksum(json.dumps(content))}, indent=2) + "\n"


def read_checked(text: str) -> dict[str, Any] | None:
    """Return the file's content without the checksum, or None if it was changed."""
    try:
        content = json.loads(text)
        del content["checksum"]
    except (ValueError, KeyError, TypeError):
        return None
    return content if checked_text(content) == text else None


def checksum(text: str) -> str:
    """Return the checksum of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def checked_page(html: str) -> str:
    """Return a page of HTML that ends with its checksum."""
    return f"{html}{_PAGE_MARK}{checksum(html)} -->\n"


def is_checked_page(text: str) -> bool:
    """Tell whether a page is as `checked_page` returned it."""
    html, mark, _ = text.rpartition(_PAGE_MARK)
    return bool(mark) and checked_page(html) == text
