"""Checks that span keys: names that must be unique, learners that must exist, safe run ids."""

from __future__ import annotations

import itertools
import math
import re
from itertools import pairwise
from typing import Any

from spark_rank.config.ensemble_checks import check_ensemble, scoring_labels, user_ensembles
from spark_rank.config.fitting import reads_letor
from spark_rank.config.run_ids import check_run_id
from spark_rank.config.schema import (
    ITEM_OFFSET,
    Config,
    LearnerConfig,
    PrepareConfig,
    TrainConfig,
)
from spark_rank.config.values import suggestion
from spark_rank.errors import ConfigError
from spark_rank.learners import BASELINES, REGISTRY, learner_class, learner_names
from spark_rank.learners.errors import LearnerError, UnknownLearnerError
from spark_rank.redaction import has_secret_query
from spark_rank.visible import visible

# user and password before the host, which would go into every record and message
_WITH_LOGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/@]*:[^/@]*@")
_LONGEST_LABEL = 60
_MAX_GROUPS = 50
_MAX_GRID = 1000
_GLOB_SIGNS = "*?[]{}"
_INPUT_COLUMNS = ("user", "item", "rating", "timestamp")


def check_config(config: Config, source: str) -> None:
    """Raise `ConfigError` for what the type of a single key cannot tell."""
    check_run_id(config.run_id, f"{source}: run_id")
    # first, for other messages repeat a path
    _check_paths(config, source)
    if not config.store.strip():
        raise ConfigError(f"{source}: store: must not be empty: give a directory")
    if any(sign in config.store for sign in _GLOB_SIGNS):
        raise ConfigError(
            f"{source}: store: {visible(config.store, 60)!r} has one of the signs "
            f"{' '.join(_GLOB_SIGNS)}, which Spark reads as a pattern: name a directory without"
        )
    _check_earlier_runs(config, source)
    _check_input(config, source)
    _check_prepare(config.prepare, source)
    _check_features(config, source)
    _check_spark(config, source)
    _check_learners(config.train.learners, source)
    _check_choices(config, source)
    _check_targets(config.train, source)
    check_ensemble(config, source)
    _check_evaluate(config, source)
    _check_rank(config, source)
    _check_recommend(config, source)


def _check_earlier_runs(config: Config, source: str) -> None:
    earlier = {"previous": config.previous, "features.kept_from": config.features.kept_from}
    for key, run_id in earlier.items():
        if run_id is not None:
            check_run_id(run_id, f"{source}: {key}")
        if run_id == config.run_id:
            raise ConfigError(
                f"{source}: {key}: a run cannot go on from itself: give the new one a run_id of "
                "its own"
            )
    if config.features.kept_from is not None and config.features.kind != "factors":
        raise ConfigError(
            f"{source}: features.kept_from: keeps learned factors; leave it out with features.kind "
            f"{config.features.kind!r}"
        )


def _check_paths(config: Config, source: str) -> None:
    paths = {
        "store": config.store,
        "input.path": config.input.path,
        "input.titles": config.input.titles,
        "input.dictionaries_from": config.input.dictionaries_from,
        "synthesize.path": config.synthesize.path,
        "features.given": config.features.given,
        "recommend.include_from": config.recommend.include_from,
        "recommend.exclude_from": config.recommend.exclude_from,
    }
    for key, path in paths.items():
        if path is not None and (_WITH_LOGIN.match(path) or has_secret_query(path)):
            raise ConfigError(
                f"{source}: {key}: holds a password or a signature: paths are shown and recorded, "
                "so give it as a setting of the file system below 'spark:'"
            )


def _check_input(config: Config, source: str) -> None:
    settings = config.input
    for name in settings.columns:
        if name not in _INPUT_COLUMNS:
            raise ConfigError(
                f"{source}: unknown key 'input.columns.{visible(name, 60)}' "
                f"({suggestion(name, _INPUT_COLUMNS)})"
            )
    low, high = settings.rating_min, settings.rating_max
    if low is not None and high is not None and not low < high:
        raise ConfigError(
            f"{source}: input.rating_min: {low:g} must be below input.rating_max {high:g}"
        )
    separator = settings.separator
    if separator is not None and separator != "::" and len(separator) != 1:
        raise ConfigError(
            f"{source}: input.delimiter: {visible(separator, 60)!r} must be a single character, "
            "or '::' (a tab is written \\t)"
        )
    for name in ("user", "item", "rating"):
        if name in settings.columns and settings.columns[name] is None:
            raise ConfigError(f"{source}: input.columns.{name}: cannot be left out")
    for key in ("levels", "cuts"):
        values = getattr(settings, key)
        if any(low >= high for low, high in pairwise(values)):
            raise ConfigError(f"{source}: input.{key}: must rise from entry to entry: sort them")
    if settings.path is not None and not settings.path.strip():
        raise ConfigError(f"{source}: input.path: must not be empty: give a path, or null")


def _check_prepare(settings: PrepareConfig, source: str) -> None:
    if settings.fold > settings.folds:
        raise ConfigError(
            f"{source}: prepare.fold: {settings.fold} must be at most prepare.folds "
            f"{settings.folds}"
        )
    for position, entry in enumerate(settings.filters):
        key = f"{source}: prepare.filters[{position}]"
        if not entry.label:
            raise ConfigError(
                f"{key}: sets no bound: give user_min, user_max, item_min or item_max"
            )
        for kind in ("user", "item"):
            least, most = getattr(entry, f"{kind}_min"), getattr(entry, f"{kind}_max")
            if least is not None and most is not None and least > most:
                raise ConfigError(f"{key}: {kind}_min {least} must be at most {kind}_max {most}")


def _check_features(config: Config, source: str) -> None:
    settings = config.features
    least, most = settings.reference_min, settings.reference_max
    if least is not None and most is not None and least > most:
        raise ConfigError(
            f"{source}: features.reference_min: {least} must be at most features.reference_max "
            f"{most}"
        )
    if settings.given is not None and not settings.given.strip():
        raise ConfigError(f"{source}: features.given: must not be empty: give a path, or null")
    if settings.given is not None and settings.kind != "given":
        raise ConfigError(
            f"{source}: features.given: is not read by features.kind {settings.kind!r}: leave it "
            "out, or choose kind 'given'"
        )
    letor = reads_letor(config)
    if letor and settings.kind != "given":
        raise ConfigError(
            f"{source}: features.kind: {settings.kind!r} has nothing to learn from in input.format "
            "letor, where every document belongs to one query: leave features.kind out, or set it "
            "to 'given'"
        )
    if settings.kind == "given" and settings.given is None and not letor:
        raise ConfigError(
            f"{source}: features.kind: 'given' needs feature vectors: name a Parquet file with "
            "features.given, or read input.format letor"
        )


def _check_spark(config: Config, source: str) -> None:
    for name in config.spark:
        if not name.startswith("spark."):
            raise ConfigError(
                f"{source}: spark.{visible(name, 60)}: Spark settings go by their full names: "
                f"'spark.{visible(name, 60)}' below 'spark:'"
            )


def _check_evaluate(config: Config, source: str) -> None:
    starts = config.evaluate.activity
    if any(start < 1 for start in starts) or sorted(set(starts)) != starts:
        raise ConfigError(
            f"{source}: evaluate.activity: {starts} must be ascending numbers of ratings, from 1"
        )
    if len(starts) > _MAX_GROUPS:
        raise ConfigError(f"{source}: evaluate.activity: at most {_MAX_GROUPS} groups can be shown")


def _check_rank(config: Config, source: str) -> None:
    settings = config.rank
    of_members = settings.preference == "members"
    labels = [*user_ensembles(config.ensemble)] if of_members else scoring_labels(config)
    for position, name in enumerate(settings.learners):
        if name not in labels:
            raise ConfigError(
                f"{source}: rank.learners[{position}]: no learner is called {visible(name, 60)!r} "
                f"({suggestion(name, labels)})"
            )
    if len(set(settings.learners)) < len(settings.learners):
        raise ConfigError(f"{source}: rank.learners: name every learner once")
    if settings.preference != "votes" and len(settings.learners) > 1:
        raise ConfigError(
            f"{source}: rank.learners: preference {settings.preference!r} asks one learner, not "
            f"{len(settings.learners)}: name one, or choose preference 'votes'"
        )
    if settings.top is not None and settings.method == "degree":
        raise ConfigError(
            f"{source}: rank.top: method 'degree' puts all items in order: leave top out, or "
            "choose method 'quicksort'"
        )


def _check_recommend(config: Config, source: str) -> None:
    settings = config.recommend
    labels = scoring_labels(config)
    if config.train.baselines:
        labels.append(ITEM_OFFSET)
    elif settings.learner == ITEM_OFFSET:
        raise ConfigError(
            f"{source}: recommend.learner: {ITEM_OFFSET!r} is a baseline, and train.baselines is "
            "false: set it, or name a learner"
        )
    if settings.learner is not None and settings.learner not in labels:
        raise ConfigError(
            f"{source}: recommend.learner: no learner is called {visible(settings.learner, 60)!r} "
            f"({suggestion(settings.learner, labels)})"
        )


def _check_targets(settings: TrainConfig, source: str) -> None:
    least, most = settings.targets_min, settings.targets_max
    if least is not None and most is not None and least > most:
        raise ConfigError(f"{source}: train.targets_min: {least} must be at most {most}")


def _check_learners(learners: list[LearnerConfig], source: str) -> None:
    if not learners:
        raise ConfigError(f"{source}: train.learners: name at least one learner")
    labels = list(BASELINES)
    for position, entry in enumerate(learners):
        key = f"{source}: train.learners[{position}]"
        if not 1 <= len(entry.label.strip()) <= len(entry.label) <= _LONGEST_LABEL:
            raise ConfigError(
                f"{key}.name: must be 1 to {_LONGEST_LABEL} characters, not only spaces"
            )
        if entry.label in labels:
            raise ConfigError(f"{key}.name: {entry.label!r} is taken: give it another name")
        labels.append(entry.label)
        _check_learner(entry, key)


def _check_choices(config: Config, source: str) -> None:
    if config.features.kind != "offset":
        return
    for position, entry in enumerate(config.train.learners):
        if entry.grid and not (learner_class(entry.learner).of_ranks and entry.item_offset):
            raise ConfigError(
                f"{source}: train.learners[{position}].grid: without features there is nothing to "
                "choose: leave it out, or choose another features.kind than 'offset'"
            )


def _check_learner(entry: LearnerConfig, key: str) -> None:
    try:
        learner = learner_class(entry.learner)
    except UnknownLearnerError as error:
        own = entry.learner in REGISTRY or ":" in entry.learner
        hint = "" if own else f" ({suggestion(entry.learner, learner_names())})"
        raise ConfigError(f"{key}.learner: {visible(str(error), 300)}{hint}") from None
    _check_names(entry, key)
    points = math.prod(len(values) for values in entry.grid.values())
    if points > _MAX_GRID:
        raise ConfigError(f"{key}.grid: has {points:,} points, {_MAX_GRID:,} are the most")
    if entry.selection == "leave_pair_out" and not learner.exact_leave_pair_out:
        raise ConfigError(
            f"{key}.selection: 'leave_pair_out' is for mprank, which has it in closed form: choose "
            "'k_fold' or 'sample'"
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
            raise ConfigError(f"{key}.grid.{name}: is among the params too: leave one out")


def _check_point(entry: LearnerConfig, params: dict[str, Any], where: str) -> None:
    learner = learner_class(entry.learner)
    if params.get("kernel") == "precomputed":
        raise ConfigError(f"{where}.kernel: 'precomputed' is for use on arrays: name a kernel")
    try:
        learner(**params, **({"n_ranks": 2} if learner.of_ranks else {})).check_parameters()
    except LearnerError as error:
        raise ConfigError(f"{where}.{error}") from None
    linear = params.get("kernel", "linear") == "linear" and params.get("readout") != "voted"
    if learner.of_ranks and entry.item_offset and not linear:
        raise ConfigError(
            f"{where}: with a kernel, and when it votes, {entry.learner!r} cannot take the item "
            "offset as a feature: set item_offset: false"
        )
