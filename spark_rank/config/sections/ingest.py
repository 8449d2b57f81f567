"""Checks of the section `input`."""

from __future__ import annotations

from itertools import pairwise

from spark_rank.config.schema import Config
from spark_rank.config.values import suggestion
from spark_rank.errors import ConfigError
from spark_rank.visible import visible

_INPUT_COLUMNS = ("user", "item", "rating", "timestamp", "part")


def check_input(config: Config) -> None:
    """Raise `ConfigError` for keys of `input` that do not fit together."""
    settings = config.input
    for name in settings.columns:
        if name not in _INPUT_COLUMNS:
            raise ConfigError(
                f"unknown key 'input.columns.{visible(name, 60)}' "
                f"({suggestion(name, _INPUT_COLUMNS)})"
            )
    low, high = settings.rating_min, settings.rating_max
    if low is not None and high is not None and not low < high:
        raise ConfigError(f"input.rating_min: {low:g} must be below input.rating_max {high:g}")
    separator = settings.separator
    if separator is not None and separator != "::" and len(separator) != 1:
        raise ConfigError(
            f"input.delimiter: {visible(separator, 60)!r} must be a single character, "
            "or '::' (a tab is written \\t)"
        )
    for name in ("user", "item", "rating"):
        if name in settings.columns and settings.columns[name] is None:
            raise ConfigError(f"input.columns.{name}: cannot be left out")
    for key in ("levels", "cuts"):
        values = getattr(settings, key)
        if any(low >= high for low, high in pairwise(values)):
            raise ConfigError(f"input.{key}: must be in rising order: sort them")
    _check_paths(config)


def _check_paths(config: Config) -> None:
    for key in ("path", "test_path", "validation_path"):
        path = getattr(config.input, key)
        if path is not None and not path.strip():
            raise ConfigError(f"input.{key}: must not be empty: give a path, or null")


def check_given_split(config: Config) -> None:
    """Raise `ConfigError` unless the input says what is held out just where the split is given.

    Only the stage asks for it: keys that need each other may be set one by one.
    """
    settings, is_given = config.input, config.prepare.split == "given"
    for key in ("test_path", "validation_path"):
        if getattr(settings, key) is not None:
            if settings.path is None:
                raise ConfigError(f"input.{key}: needs input.path, the part to learn from")
            if settings.columns.get("part") is not None:
                raise ConfigError(
                    f"input.{key}: the column input.columns.part says which part a rating is of: "
                    "leave one of the two out"
                )
    if settings.has_parts and not is_given:
        raise ConfigError(
            f"prepare.split: {config.prepare.split!r} does not use the parts of the input: set "
            "prepare.split=given, or leave input.test_path, input.validation_path and "
            "input.columns.part out"
        )
    if is_given and not settings.has_parts:
        raise ConfigError(
            "prepare.split: 'given' needs the parts: name the held-out ratings with "
            "input.test_path, or the column that says which they are with input.columns.part"
        )
