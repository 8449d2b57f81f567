"""Checks of the section `ensemble`."""

from __future__ import annotations

from spark_rank.config.labels import on_sequence, trained_labels
from spark_rank.config.schema import Config, EnsembleConfig
from spark_rank.errors import ConfigError
from spark_rank.learners import BASELINES, RIVALS


def check_ensemble(config: Config) -> None:
    """Raise `ConfigError` for keys of `ensemble` that do not fit together."""
    settings = config.ensemble
    if not settings.learners:
        raise ConfigError("ensemble.learners: name at least one ensemble")
    taken = list(RIVALS) if on_sequence(settings) else [*BASELINES, *trained_labels(config)]
    for position, entry in enumerate(settings.learners):
        key = f"ensemble.learners[{position}]"
        if entry.label in taken:
            raise ConfigError(f"{key}.name: {entry.label!r} is taken: give it another name")
        taken.append(entry.label)
        if entry.kernel != "linear" and not on_sequence(settings):
            raise ConfigError(
                f"{key}.kernel: {entry.kernel!r} is for a sequence; the members of users are "
                "linear: leave it out, or set ensemble.sequence or ensemble.user"
            )
        if entry.kernel != "linear" and settings.user is not None and entry.item_offset:
            raise ConfigError(
                f"{key}.item_offset: with a kernel the item offset cannot be a feature: set "
                "item_offset: false"
            )
    _check_problem(settings)


def _check_problem(settings: EnsembleConfig) -> None:
    if settings.sequence is not None and settings.user is not None:
        raise ConfigError("ensemble.user: ensemble.sequence is set too: leave one of them out")
    for key in ("sequence", "user"):
        value = getattr(settings, key)
        if value is not None and not value.strip():
            raise ConfigError(f"ensemble.{key}: must not be empty; null: every user")
    if settings.trials > 1 and not on_sequence(settings):
        raise ConfigError(
            f"ensemble.trials: {settings.trials} is for a sequence; every user is "
            "learned once: set it to 1, or set ensemble.sequence or ensemble.user"
        )
