"""Keeps secrets of `spark.*` settings out of everything that is printed or written.

Code that reads settings calls `remember`; code that shows text passes it through `redact`. Each
process remembers the secrets of its own settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

REDACTED = "*********(redacted)"
# names of settings with secrets: those of Spark's own spark.redaction.regex and a few more, such as
# names that end in "key" (also within a command line) and access signatures
PATTERN = (
    "(?i)secret|passw(or)?d|passphrase|token|credential|(access|account|api|private)[.]?key"
    "|[._-]key([^a-z]|$)|[.]sas[.]"
)
# parameters of a pre-signed URL that give access as a password does
_SIGNATURE = re.compile(r"(?i)(^|-)sig(nature)?$")
# `-Dname=value` and the like within longer settings
_ASSIGNMENT = re.compile(r"([^\s=,;&?]+)=([^\s,;&]+)")
# shorter values occur in other text by chance
_SHORTEST = 4
_PLAIN_WORDS = ("true", "false", "none", "null")

_remembered: set[str] = set()


def is_secret(name: str) -> bool:
    """Tell whether a setting of this name holds a secret."""
    return re.search(PATTERN, name) is not None


def has_secret_query(path: str) -> bool:
    """Tell whether a URL has a secret in its query; in other paths `?` is a wildcard."""
    address, _, query = path.partition("?")
    names = [name for name, _ in parse_qsl(query)] if "://" in address else []
    return any(is_secret(name) or _SIGNATURE.search(name) for name in names)


def shown_setting(name: str, value: str) -> str:
    """Return a setting's value, redacted if it is a secret."""
    return REDACTED if is_secret(name) or is_secret(value) else value


def remember(settings: Mapping[str, str]) -> None:
    """Remember the secrets among settings, so that `redact` finds them in any text."""
    for name, value in settings.items():
        values = [value] if is_secret(name) else []
        values += [part for key, part in _ASSIGNMENT.findall(value) if is_secret(key)]
        _remembered.update(
            secret
            for secret in values
            if len(secret) >= _SHORTEST and secret.lower() not in _PLAIN_WORDS
        )


def redact(text: str) -> str:
    """Return text without the secrets that were remembered."""
    # longest first, because one secret may contain another
    for secret in sorted(_remembered, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text
