"""Makes text from outside safe to show in a terminal, a web page or a spreadsheet."""

from __future__ import annotations

import re
import unicodedata

# control characters, lone surrogates, and what makes text run backwards or hides a part of it
_CONTROL = ("Cc", "Cs")
_FORMATTING = re.compile(
    "[\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)
_FORMULA = re.compile(r"[=+\-@\t\r]")
# a signed number, perhaps with its interval: the only text of our tables that begins with a sign
# (the report writes the minus U+2212, which spreadsheets do not read as a formula)
_SIGNED = r"[-+\u2212]?[0-9.,]*(?:[eE][-+\u2212]?[0-9]+)?"
_NUMBER = re.compile(rf"{_SIGNED}(?: \[{_SIGNED}, {_SIGNED}\])?")


def visible(text: str, length: int | None = None) -> str:
    r"""Return text with every control character escaped, as in ``\x1b`` or ``\u202e``.

    Text longer than `length` is cut and ends in an ellipsis.
    """
    if length is not None and len(text) > length:
        text = text[: length - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_escaped, text))


def inert(text: str) -> str:
    """Return the text of a table cell so that no spreadsheet runs it as a formula when pasted.

    A formula gets a leading apostrophe, which marks it as text in spreadsheets.
    """
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def _escaped(character: str) -> str:
    is_control = unicodedata.category(character) in _CONTROL or _FORMATTING.match(character)
    return character.encode("unicode_escape").decode() if is_control else character
