"""Keeps secrets of `spark.*` settings out of everything that is printed or written.

Whoever takes settings in says so with `remember`; whoever shows text passes it through `redact`.
The memory is one per process, for no text is shown on behalf of another process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

REDACTED = "*********(redacted)"
# names of settings with secrets, as Spark's own spark.redaction.regex, and a few more; a key is one
# where its name ends, inside of a command line too, and so are signatures that give access
PATTERN = (
    "(?i)secret|passw(or)?d|passphrase|token|credential|(access|account|api|private)[.]?key"
    "|[._-]key([^a-z]|$)|[.]sas[.]"
)
# names in a URL's query that are as good as a password: a link signed in advance
_SIGNATURE = re.compile(r"(?i)(^|-)sig(nature)?$")
# `-Dname=value` and the like inside of longer settings
_ASSIGNMENT = re.compile(r"([^\s=,;&?]+)=([^\s,;&]+)")
# shorter values are no secrets that could be told from other text
_SHORTEST = 4
_PLAIN_WORDS = ("true", "false", "none", "null")

_remembered: set[str] = set()


def is_secret(name: str) -> bool:
    """Tell whether a setting of this name holds a secret."""
    return re.search(PATTERN, name) is not None


def has_secret_query(path: str) -> bool:
    """Tell whether a URL carries a secret in its query; in other paths `?` is a glob's sign."""
    address, _, query = path.partition("?")
    names = [name for name, _ in parse_qsl(query)] if "://" in address else []
    return any(is_secret(name) or _SIGNATURE.search(name) for name in names)


def shown_setting(name: str, value: str) -> str:
    """Return a setting's value as it may be shown."""
    return REDACTED if is_secret(name) or is_secret(value) else value


def remember(settings: Mapping[str, str]) -> None:
    """Take note of the secrets among settings, so that `redact` finds them in any text."""
    for name, value in settings.items():
        found = [value] if is_secret(name) else []
        found += [part for key, part in _ASSIGNMENT.findall(value) if is_secret(key)]
        _remembered.update(
            secret
            for secret in found
            if len(secret) >= _SHORTEST and secret.lower() not in _PLAIN_WORDS
        )


def redact(text: str) -> str:
    """Return text without the secrets that were remembered."""
    # the longest first, for one may stand inside of another
    for secret in sorted(_remembered, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text
