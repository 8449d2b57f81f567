"""Text from outside as it may be shown: it steers no terminal, no page and no spreadsheet."""

from __future__ import annotations

import re
import unicodedata

# control characters, lone surrogates, and what makes text run backwards or hides a part of it
_STEERING = ("Cc", "Cs")
_FORMATTING = re.compile(
    "[\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)
_FORMULA = re.compile(r"[=+\-@\t\r]")
# what begins with a sign in a table of ours: a number, with its interval
# (the report writes a minus, U+2212, which no spreadsheet takes for one)
_SIGNED = r"[-+\u2212]?[0-9.,]*(?:[eE][-+\u2212]?[0-9]+)?"
_NUMBER = re.compile(rf"{_SIGNED}(?: \[{_SIGNED}, {_SIGNED}\])?")


def visible(text: str, length: int | None = None) -> str:
    r"""Return text with every steering character written out, as in ``\x1b`` or ``\u202e``.

    What is longer than `length` ends in an ellipsis.
    """
    if length is not None and len(text) > length:
        text = text[: length - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_written_out, text))


def inert(text: str) -> str:
    """Return text of a table cell that no spreadsheet takes for a formula when it is pasted there.

    A formula gets an apostrophe in front, which spreadsheets read as: this is text.
    """
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def _written_out(character: str) -> str:
    steering = unicodedata.category(character) in _STEERING or _FORMATTING.match(character)
    return character.encode("unicode_escape").decode() if steering else character
