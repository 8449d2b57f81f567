"""The labels of all that have models: learners of train, and ensembles."""

from __future__ import annotations

from spark_rank.config.schema import Config, EnsembleConfig, EnsembleLearnerConfig


def on_sequence(settings: EnsembleConfig) -> bool:
    """Tell whether ensembles learn one sequence instead of every user."""
    return settings.sequence is not None or settings.user is not None


def trained_labels(config: Config) -> list[str]:
    """Return the labels of the learners that train learns."""
    return [entry.label for entry in config.train.learners]


def user_ensembles(settings: EnsembleConfig) -> dict[str, EnsembleLearnerConfig]:
    """Return the ensembles that are learned for every user, by label."""
    if on_sequence(settings):
        return {}
    return {entry.label: entry for entry in settings.learners}


def scoring_labels(config: Config) -> list[str]:
    """Return the labels of all learners and ensembles with a model for every user."""
    return [*trained_labels(config), *user_ensembles(config.ensemble)]
