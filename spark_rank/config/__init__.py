"""Typed, strict configuration: YAML file, then ``--set`` on top, checked key by key."""

from spark_rank.config.loading import config_of, load_config, shown, to_yaml
from spark_rank.config.schema import (
    Config,
    FeaturesConfig,
    FilterConfig,
    InputConfig,
    LearnerConfig,
    PrepareConfig,
    SynthesizeConfig,
    TrainConfig,
)

__all__ = [
    "Config",
    "FeaturesConfig",
    "FilterConfig",
    "InputConfig",
    "LearnerConfig",
    "PrepareConfig",
    "SynthesizeConfig",
    "TrainConfig",
    "config_of",
    "load_config",
    "shown",
    "to_yaml",
]
