"""Checks of the section `prepare`."""

from __future__ import annotations

from spark_rank.config.schema import Config
from spark_rank.errors import ConfigError


def check_prepare(config: Config) -> None:
    """Raise `ConfigError` for keys of `prepare` that do not fit together."""
    settings = config.prepare
    if settings.fold > settings.folds:
        raise ConfigError(
            f"prepare.fold: {settings.fold} must be at most prepare.folds {settings.folds}"
        )
    if settings.held_out_part in settings.train_parts:
        raise ConfigError(
            f"prepare.train_parts: {settings.held_out_part!r} is held out (prepare.held_out_part), "
            "so it cannot be learned from"
        )
    if not settings.train_parts:
        raise ConfigError("prepare.train_parts: must name a part to learn from")
    for position, entry in enumerate(settings.filters):
        key = f"prepare.filters[{position}]"
        if not entry.label:
            raise ConfigError(
                f"{key}: sets no bound: give user_min, user_max, item_min or item_max"
            )
        for kind in ("user", "item"):
            least, most = getattr(entry, f"{kind}_min"), getattr(entry, f"{kind}_max")
            if least is not None and most is not None and least > most:
                raise ConfigError(f"{key}: {kind}_min {least} must be at most {kind}_max {most}")
