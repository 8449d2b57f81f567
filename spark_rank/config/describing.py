"""The help text of every key: its meaning, and its default as ``--set`` takes it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import yaml


def describe(kind: type, sections: Sequence[str], prefix: str = "") -> list[tuple[str, str, str]]:
    """Return name, meaning and default of the keys in these sections; "" is the top level."""
    return list(_describe(kind, sections, prefix))


def _describe(kind: type, sections: Sequence[str], prefix: str) -> Iterator[tuple[str, str, str]]:
    for entry in dataclasses.fields(kind):
        default = entry.default
        if default is dataclasses.MISSING and entry.default_factory is not dataclasses.MISSING:
            default = entry.default_factory()
        if dataclasses.is_dataclass(default):
            if entry.name in sections:
                yield from _describe(type(default), ("",), f"{entry.name}.")
        elif "" in sections:
            yield f"{prefix}{entry.name}", entry.metadata["doc"], _shown(default)


def _shown(default: Any) -> str:
    """Return a default as ``--set key=…`` takes it: text unchanged, others as one line of YAML."""
    if isinstance(default, str):
        return default
    return _as_flow(_plain(default))


def _as_flow(value: Any) -> str:
    """Return plain values as one line of YAML."""
    text: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=math.inf, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _plain(value: Any) -> Any:
    """Return values with dataclasses as mappings, without their empty fields."""
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = ((entry.name, getattr(value, entry.name)) for entry in dataclasses.fields(value))
        return {
            name: _plain(field_value)
            for name, field_value in named
            if field_value not in (None, [], {})
        }
    return value
