"""Checks of the section `features`."""

from __future__ import annotations

from spark_rank.config.fitting import reads_letor
from spark_rank.config.schema import Config
from spark_rank.errors import ConfigError


def check_features(config: Config) -> None:
    """Raise `ConfigError` for keys of `features` that do not fit together."""
    settings = config.features
    least, most = settings.reference_min, settings.reference_max
    if least is not None and most is not None and least > most:
        raise ConfigError(
            f"features.reference_min: {least} must be at most features.reference_max {most}"
        )
    if settings.given is not None and not settings.given.strip():
        raise ConfigError("features.given: must not be empty: give a path, or null")
    if settings.given is not None and settings.kind != "given":
        raise ConfigError(
            f"features.given: is not read by features.kind {settings.kind!r}: leave it "
            "out, or choose kind 'given'"
        )
    letor = reads_letor(config)
    if letor and settings.kind != "given":
        raise ConfigError(
            f"features.kind: {settings.kind!r} has nothing to learn from in input.format "
            "letor, where every document belongs to one query: leave features.kind out, or set it "
            "to 'given'"
        )
    if settings.kind == "given" and settings.given is None and not letor:
        raise ConfigError(
            "features.kind: 'given' needs feature vectors: name a Parquet file with "
            "features.given, or read input.format letor"
        )
