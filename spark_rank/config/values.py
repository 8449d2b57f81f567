"""Turns plain YAML values into the declared types, strictly; every error names its key."""

from __future__ import annotations

import dataclasses
import difflib
import math
import reprlib
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from spark_rank.visible import visible

# numbers of rows and ratings are 32-bit integers in Spark and Arrow
_MOST_COUNTED = 2**31 - 1
# how messages show a value that does not fit
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 120


class SettingError(Exception):
    """A value does not fit its key; the message names both and says what to do."""


def convert(kind: Any, value: Any, key: str) -> Any:
    """Return `value` as `kind` (a dataclass, scalar, list, dict, Literal or optional type)."""
    if dataclasses.is_dataclass(kind):
        return _to_dataclass(kind, value, key)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _to_optional(arguments, value, key)
    if origin is typing.Literal:
        return _to_choice(arguments, value, key)
    if origin is list:
        return _to_list(arguments[0], value, key)
    if origin is dict:
        return _to_dict(arguments[1], value, key)
    if kind is Any:
        return value
    return _to_scalar(kind, value, key)


def holds_text(kind: Any, key: str) -> bool:
    """Tell whether the dotted `key` below the dataclass `kind` takes text."""
    for name in key.split("."):
        if dataclasses.is_dataclass(kind):
            kind = typing.get_type_hints(kind).get(name)
        elif typing.get_origin(kind) is dict:
            kind = typing.get_args(kind)[1]
        else:
            return False
    # the values of a dict and the entries of a list are read as YAML, then converted
    options = typing.get_args(kind) if typing.get_origin(kind) not in (dict, list) else ()
    kinds = (kind, *options)
    return str in kinds or any(typing.get_origin(entry) is typing.Literal for entry in kinds)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?``, or the list of known names."""
    names = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), names, 1, 0.6)
    return f"did you mean '{names[close[0]]}'?" if close else f"known: {', '.join(names.values())}"


def _to_dataclass(kind: Any, value: Any, key: str) -> Any:
    if not isinstance(value, Mapping):
        raise SettingError(f"{key}: must be a section with keys, not {_show(value)}")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    types_by_name = typing.get_type_hints(kind)
    prefix = f"{key}." if key else ""
    arguments = {}
    for name, raw in value.items():
        if name not in fields:
            known_keys = [prefix + known for known in fields]
            hint = suggestion(prefix + visible(str(name), 60), known_keys)
            raise SettingError(f"unknown key '{prefix}{visible(str(name), 60)}' ({hint})")
        converted = convert(types_by_name[name], raw, prefix + name)
        _check_limits(converted, fields[name].metadata, prefix + name)
        arguments[name] = converted
    return kind(**arguments)


def _to_optional(kinds: tuple[Any, ...], value: Any, key: str) -> Any:
    if value is None:
        return None
    (inner,) = [kind for kind in kinds if kind is not type(None)]
    return convert(inner, value, key)


def _to_choice(options: tuple[Any, ...], value: Any, key: str) -> Any:
    if value not in options or isinstance(value, bool):
        hint = suggestion(visible(str(value), 60), [str(option) for option in options])
        raise SettingError(f"{key}: {_show(value)} is not one of the choices ({hint})")
    return value


def _to_list(kind: Any, value: Any, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise SettingError(f"{key}: must be a list, not {_show(value)}")
    return [convert(kind, item, f"{key}[{position}]") for position, item in enumerate(value)]


def _to_dict(kind: Any, value: Any, key: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise SettingError(f"{key}: must be a mapping, not {_show(value)}")
    converted = {}
    for name, item in value.items():
        if not isinstance(name, str):
            raise SettingError(f"{key}: the name {_show(name)} must be text: put it in quotes")
        # Spark settings and column positions are text, though they look like numbers or booleans
        takes_text = item is not None and holds_text(dict[str, kind], "any")
        place = f"{key}.{visible(name, 60)}"
        converted[name] = _as_text(item, place) if takes_text else convert(kind, item, place)
    return converted


def _as_text(value: Any, key: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return _clean(str(value), key)
    # not shown: it may be a secret
    raise SettingError(f"{key}: must be a plain value, not a {type(value).__name__}")


def _clean(text: str, key: str) -> str:
    """Return text without control characters, except tabs, which may separate fields."""
    if visible(text.replace("\t", " ")) != text.replace("\t", " "):
        raise SettingError(
            f"{key}: contains a control character, or one that hides or reverses text: remove it"
        )
    return text


def _to_scalar(kind: type, value: Any, key: str) -> Any:
    if kind is float:
        return _to_float(value, key)
    if isinstance(value, str) and kind is str:
        return _clean(value, key)
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    words = {int: "a whole number", str: "text (put it in quotes)", bool: "true or false"}
    raise SettingError(f"{key}: must be {words[kind]}, not {_show(value)}")


def _to_float(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SettingError(f"{key}: must be a number, not {_show(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise SettingError(f"{key}: must be a finite number, not {number}")
    return number


def _check_limits(value: Any, limits: Mapping[str, Any], key: str) -> None:
    if isinstance(value, list):
        for position, item in enumerate(value):
            _check_limits(item, limits, f"{key}[{position}]")
        return
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return
    most = limits.get("at_most", _MOST_COUNTED if isinstance(value, int) else None)
    if "above" in limits and not value > limits["above"]:
        raise SettingError(f"{key}: must be above {limits['above']:g}, not {value}")
    if "at_least" in limits and value < limits["at_least"]:
        raise SettingError(f"{key}: must be at least {limits['at_least']:g}, not {value}")
    if most is not None and value > most:
        raise SettingError(f"{key}: must be at most {most:,}, not {value}")


def _show(value: Any) -> str:
    return "empty (null)" if value is None else f"{type(value).__name__} {_SHORT.repr(value)}"
