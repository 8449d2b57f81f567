"""Converts facts to the JSON of a record, and back."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

from spark_rank.errors import ContractError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts of one stage; this base class itself stands for no facts."""

    stage: ClassVar[str] = ""


AnyFacts = TypeVar("AnyFacts", bound=Facts)


class _MisfitError(Exception):
    """A value of the wrong type; the message says which and why."""


def under(key: str) -> Any:
    """Return an optional field whose key in the record cannot be a name in Python."""
    return dataclasses.field(default=None, metadata={"key": key})


def as_record(value: Any) -> Any:
    """Return facts in the types of JSON; a field that is None by default is left out."""
    if dataclasses.is_dataclass(value):
        return {
            _key(field): as_record(entry)
            for field in dataclasses.fields(value)
            if (entry := getattr(value, field.name)) is not None or field.default is not None
        }
    if isinstance(value, Mapping):
        return {name: as_record(entry) for name, entry in value.items()}
    return [as_record(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def read_facts(kind: type[AnyFacts], record: Mapping[str, Any], run_id: str) -> AnyFacts:
    """Return the facts of a stage's record in run `run_id`.

    Keys that `kind` does not have are ignored. Raises `ContractError` if a required key is missing
    or a value has another type.
    """
    try:
        facts: AnyFacts = _converted(kind, record["facts"], "")
    except _MisfitError as misfit:
        raise ContractError(
            f"run {run_id!r}: the record of '{kind.stage or record['stage']}' {misfit}: another "
            "version of this package made it: start a new run with --set run_id=NAME"
        ) from None
    return facts


def was_skipped(record: Mapping[str, Any]) -> bool:
    """Tell whether a stage had nothing to do; then its facts have `skipped`."""
    return bool(record["facts"].get("skipped"))


def _key(field: dataclasses.Field[Any]) -> str:
    key: str = field.metadata.get("key", field.name)
    return key


def _converted(kind: Any, value: Any, key: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _as_dataclass(kind, value, key)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        (inner,) = [argument for argument in arguments if argument is not types.NoneType]
        return None if value is None else _converted(inner, value, key)
    if origin is tuple:
        return _as_tuple(arguments, value, key)
    if origin is not None and issubclass(origin, Mapping):
        named = _checked(value, Mapping, key).items()
        return {name: _converted(arguments[1], entry, f"{key}.{name}") for name, entry in named}
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if kind is Any else _checked(value, kind, key)


def _as_dataclass(kind: Any, value: Any, key: str) -> Any:
    values, types_by_name = _checked(value, Mapping, key), _types(kind)
    arguments = {}
    for field in dataclasses.fields(kind):
        path = f"{key}.{_key(field)}".lstrip(".")
        if _key(field) in values:
            arguments[field.name] = _converted(types_by_name[field.name], values[_key(field)], path)
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise _MisfitError(f"has no fact {path!r}")
    return kind(**arguments)


def _as_tuple(kinds: tuple[Any, ...], value: Any, key: str) -> tuple[Any, ...]:
    values = _checked(value, list, key)
    each = kinds[:1] * len(values) if kinds[-1] is Ellipsis else kinds
    if len(each) != len(values):
        raise _MisfitError(f"has {len(values)} numbers as {key!r}, not {len(each)}")
    pairs = zip(each, values, strict=True)
    return tuple(
        _converted(entry_kind, entry, f"{key}[{n}]") for n, (entry_kind, entry) in enumerate(pairs)
    )


def _checked(value: Any, kind: type, key: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        words = f"the fact {key!r}" if key else "facts"
        raise _MisfitError(f"has {words} as {type(value).__name__}, not {kind.__name__}")
    return value


@lru_cache
def _types(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
