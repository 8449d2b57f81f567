"""Checks of the section `input`."""

from __future__ import annotations

from itertools import pairwise

from spark_rank.config.schema import Config
from spark_rank.config.values import suggestion
from spark_rank.errors import ConfigError
from spark_rank.visible import visible

_INPUT_COLUMNS = ("user", "item", "rating", "timestamp")


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
    if settings.path is not None and not settings.path.strip():
        raise ConfigError("input.path: must not be empty: give a path, or null")
