"""What help says of every key: meaning, type, default and limits, as they can be typed back."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

_NAMES = {bool: "true or false", int: "whole number", float: "number", str: "text"}
_BOUNDS = {"above": "above", "at_least": "at least", "at_most": "at most"}


@dataclass(frozen=True)
class Key:
    """One key; `choices` are the words it takes, if there are only these, `example` is a setting.

    `entry` is the class of the entries of a list that have keys of their own.
    """

    name: str
    doc: str
    kind: str
    choices: tuple[str, ...]
    bounds: str
    default: str
    example: str
    entry: type | None

    @property
    def optional(self) -> bool:
        """Tell whether the key may be null."""
        return self.kind.endswith(" or null")


def describe(kind: type, sections: Sequence[str], prefix: str = "") -> list[Key]:
    """Return every key in the named sections; "" is the top level."""
    return list(_describe(kind, sections, prefix))


def _describe(kind: type, sections: Sequence[str], prefix: str) -> Iterator[Key]:
    hints = typing.get_type_hints(kind)
    for entry in dataclasses.fields(kind):
        default = _default_of(entry)
        if dataclasses.is_dataclass(default):
            if entry.name in sections:
                yield from _describe(type(default), ("",), f"{entry.name}.")
        elif "" in sections:
            yield _key(f"{prefix}{entry.name}", hints[entry.name], default, entry.metadata)


def _default_of(entry: dataclasses.Field[Any]) -> Any:
    if entry.default_factory is not dataclasses.MISSING:
        return entry.default_factory()
    return entry.default


def _key(name: str, kind: Any, default: Any, metadata: Mapping[str, Any]) -> Key:
    bounds = [f"{word} {metadata[key]:,}" for key, word in _BOUNDS.items() if key in metadata]
    choices = tuple(str(each) for each in _choices(kind))
    shown = shown_value(default)
    example = metadata.get("example") or _example(choices, default, metadata, shown)
    return Key(
        name, metadata["doc"], _type_of(kind), choices, ", ".join(bounds), shown, example,
        _entry_of(kind),
    )  # fmt: skip


def _choices(kind: Any) -> tuple[Any, ...]:
    options = [kind, *typing.get_args(kind)]
    found = [typing.get_args(each) for each in options if typing.get_origin(each) is typing.Literal]
    return found[0] if found else ()


def _type_of(kind: Any) -> str:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return " or ".join("null" if each is type(None) else _type_of(each) for each in arguments)
    if origin is typing.Literal:
        return "text" if isinstance(arguments[0], str) else "number"
    if origin in (list, tuple):
        return f"list of {_type_of(arguments[0])}"
    return "map" if origin is dict else _NAMES.get(kind, "entries")


def _entry_of(kind: Any) -> type | None:
    (entry, *_) = typing.get_args(kind) or (None,)
    return entry if isinstance(entry, type) and dataclasses.is_dataclass(entry) else None


def _example(choices: Sequence[str], default: Any, metadata: Mapping[str, Any], shown: str) -> str:
    """Return another value than the default, where one can be made up."""
    if choices:
        return next(word for word in choices if word != default)
    if isinstance(default, bool):
        return shown_value(not default)
    if isinstance(default, (int, float)):
        doubled = shown_value(default * 2 or 1)
        return doubled if default * 2 <= metadata.get("at_most", math.inf) else shown
    return shown


def shown_value(default: Any) -> str:
    """Return a default as ``--set key=…`` takes it: text as it is, all else as YAML of one line."""
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
