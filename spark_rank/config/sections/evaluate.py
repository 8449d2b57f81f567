"""Checks of the section `evaluate`."""

from __future__ import annotations

from spark_rank.config.schema import Config
from spark_rank.errors import ConfigError

_MAX_GROUPS = 50


def check_evaluate(config: Config) -> None:
    """Raise `ConfigError` for keys of `evaluate` that do not fit together."""
    starts = config.evaluate.activity
    if any(start < 1 for start in starts) or sorted(set(starts)) != starts:
        raise ConfigError(
            f"evaluate.activity: {starts} must be ascending numbers of ratings, from 1"
        )
    if len(starts) > _MAX_GROUPS:
        raise ConfigError(f"evaluate.activity: at most {_MAX_GROUPS} groups can be shown")
