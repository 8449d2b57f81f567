"""How messages count things."""

from __future__ import annotations


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: ``1 user``, ``2,000 users``, ``1 entry``, ``0 entries``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {plural or f'{noun}s'}"
