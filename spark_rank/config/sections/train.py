"""Checks of the sections `train` and `tune`: learners, their parameters and their grids."""

from __future__ import annotations

import itertools
import math
from typing import Any

from spark_rank.config.schema import Config, LearnerConfig, TrainConfig
from spark_rank.config.values import suggestion
from spark_rank.errors import ConfigError
from spark_rank.learners import BASELINES, REGISTRY, learner_class, learner_names
from spark_rank.learners.errors import LearnerError, UnknownLearnerError
from spark_rank.visible import visible

_LONGEST_LABEL = 60
_MAX_GRID = 1000


def check_train(config: Config) -> None:
    """Raise `ConfigError` for impossible learners, and for bounds that no user meets."""
    _check_learners(config.train.learners)
    _check_choices(config)
    _check_targets(config.train)
    _check_weights(config)


def _check_weights(config: Config) -> None:
    if config.train.weights == "none":
        return
    if config.features.kind != "factors" or config.features.propensities == "none":
        raise ConfigError(
            "train.weights: 'propensity' needs features.kind factors and features.propensities "
            "fitted: set them, or leave train.weights out"
        )
    for position, entry in enumerate(config.train.learners):
        if not learner_class(entry.learner).takes_weights or entry.grid:
            raise ConfigError(
                f"train.learners[{position}]: a learner without weights, or with a grid, cannot "
                "be learned with train.weights: leave one of them out"
            )


def _check_learners(learners: list[LearnerConfig]) -> None:
    if not learners:
        raise ConfigError("train.learners: name at least one learner")
    labels = list(BASELINES)
    for position, entry in enumerate(learners):
        key = f"train.learners[{position}]"
        if not 1 <= len(entry.label.strip()) <= len(entry.label) <= _LONGEST_LABEL:
            raise ConfigError(
                f"{key}.name: must have 1 to {_LONGEST_LABEL} characters, and not only spaces"
            )
        if entry.label in labels:
            raise ConfigError(f"{key}.name: {entry.label!r} is taken: give it another name")
        labels.append(entry.label)
        _check_learner(entry, key)


def _check_targets(settings: TrainConfig) -> None:
    least, most = settings.targets_min, settings.targets_max
    if least is not None and most is not None and least > most:
        raise ConfigError(f"train.targets_min: {least} must be at most {most}")


def _check_choices(config: Config) -> None:
    if config.features.kind != "offset":
        return
    for position, entry in enumerate(config.train.learners):
        if entry.grid and not (learner_class(entry.learner).of_ranks and entry.item_offset):
            raise ConfigError(
                f"train.learners[{position}].grid: without features there is nothing to "
                "choose: leave the grid out, or choose another features.kind than 'offset'"
            )


def _check_learner(entry: LearnerConfig, key: str) -> None:
    try:
        learner = learner_class(entry.learner)
    except UnknownLearnerError as error:
        is_registered = entry.learner in REGISTRY or ":" in entry.learner
        hint = "" if is_registered else f" ({suggestion(entry.learner, learner_names())})"
        raise ConfigError(f"{key}.learner: {visible(str(error), 300)}{hint}") from None
    _check_names(entry, key)
    points = math.prod(len(values) for values in entry.grid.values())
    if points > _MAX_GRID:
        raise ConfigError(f"{key}.grid: has {points:,} points: at most {_MAX_GRID:,} are allowed")
    if entry.selection == "leave_pair_out" and not learner.exact_leave_pair_out:
        raise ConfigError(
            f"{key}.selection: 'leave_pair_out' is for mprank alone, where it has a closed form: "
            "choose 'k_fold' or 'sample'"
        )
    where = f"{key}.grid" if entry.grid else f"{key}.params"
    for point in itertools.product(*entry.grid.values()):
        _check_point(entry, {**entry.params, **dict(zip(entry.grid, point, strict=True))}, where)


def _check_names(entry: LearnerConfig, key: str) -> None:
    learner = learner_class(entry.learner)
    for section in ("params", "grid"):
        for name in getattr(entry, section):
            if name == "n_ranks" and learner.of_ranks:
                raise ConfigError(
                    f"{key}.{section}.n_ranks: follows from the rating scale: leave it out"
                )
            if name not in learner.parameters:
                hint = suggestion(name, learner.parameters)
                raise ConfigError(f"{key}: unknown key '{section}.{visible(name, 60)}' ({hint})")
    for name, values in entry.grid.items():
        if not values:
            raise ConfigError(f"{key}.grid.{name}: name at least one value")
        if name in entry.params:
            raise ConfigError(f"{key}.grid.{name}: is in params too: leave one of them out")


def _check_point(entry: LearnerConfig, params: dict[str, Any], where: str) -> None:
    learner = learner_class(entry.learner)
    if params.get("kernel") == "precomputed":
        raise ConfigError(
            f"{where}.kernel: 'precomputed' is only for arrays in Python: name another kernel"
        )
    try:
        learner(**params, **({"n_ranks": 2} if learner.of_ranks else {})).check_parameters()
    except LearnerError as error:
        raise ConfigError(f"{where}.{error}") from None
    linear = params.get("kernel", "linear") == "linear" and params.get("readout") != "voted"
    if learner.of_ranks and entry.item_offset and not linear:
        raise ConfigError(
            f"{where}: {entry.learner!r} cannot take the item offset as a feature with a kernel or "
            "with readout 'voted': set item_offset: false"
        )
