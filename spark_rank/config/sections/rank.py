"""Checks of the section `rank`."""

from __future__ import annotations

from spark_rank.config.labels import scoring_labels, user_ensembles
from spark_rank.config.schema import Config
from spark_rank.config.values import suggestion
from spark_rank.errors import ConfigError
from spark_rank.visible import visible


def check_rank(config: Config) -> None:
    """Raise `ConfigError` for learners without models, and keys that exclude each other."""
    settings = config.rank
    of_members = settings.preference == "members"
    labels = [*user_ensembles(config.ensemble)] if of_members else scoring_labels(config)
    for position, name in enumerate(settings.learners):
        if name not in labels:
            raise ConfigError(
                f"rank.learners[{position}]: no learner is called {visible(name, 60)!r} "
                f"({suggestion(name, labels)})"
            )
    if len(set(settings.learners)) < len(settings.learners):
        raise ConfigError("rank.learners: name every learner once")
    if settings.preference != "votes" and len(settings.learners) > 1:
        raise ConfigError(
            f"rank.learners: preference {settings.preference!r} asks one learner, not "
            f"{len(settings.learners)}: name one, or choose preference 'votes'"
        )
    if settings.top is not None and settings.method == "degree":
        raise ConfigError(
            "rank.top: method 'degree' puts all items in order: leave top out, or "
            "choose method 'quicksort'"
        )
