"""Checks of the section `recommend`."""

from __future__ import annotations

from spark_rank.config.labels import scoring_labels
from spark_rank.config.schema import ITEM_OFFSET, Config
from spark_rank.config.values import suggestion
from spark_rank.errors import ConfigError
from spark_rank.visible import visible


def check_recommend(config: Config) -> None:
    """Raise `ConfigError` for a learner without models."""
    settings = config.recommend
    if settings.diversity and settings.cut != "none":
        raise ConfigError(
            "recommend.cut: a list with recommend.diversity is not in the order of its values and "
            "has no gaps to end at: set one of the two"
        )
    labels = scoring_labels(config)
    if config.train.baselines:
        labels.append(ITEM_OFFSET)
    elif settings.learner == ITEM_OFFSET:
        raise ConfigError(
            f"recommend.learner: {ITEM_OFFSET!r} is a baseline, and train.baselines is "
            "false: set it to true, or name a learner"
        )
    if settings.learner is not None and settings.learner not in labels:
        raise ConfigError(
            f"recommend.learner: no learner is called {visible(settings.learner, 60)!r} "
            f"({suggestion(settings.learner, labels)})"
        )
