"""Checks of the section `demo`."""

from __future__ import annotations

from spark_rank.config.schema import Config
from spark_rank.errors import ConfigError

_LONGEST = 40


def check_demo(config: Config) -> None:
    """Raise `ConfigError` for a noun that no sentence has room for."""
    if not config.demo.noun.strip() or len(config.demo.noun) > _LONGEST:
        raise ConfigError(f"demo.noun: must have 1 to {_LONGEST} characters, such as films")
