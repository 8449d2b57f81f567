"""Defaults that depend on other keys: the kind of features, and a learner that fits it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from spark_rank.config.schema import (
    DEFAULT_LABEL,
    FACTOR_PARAMS,
    Config,
    FeatureKind,
    LearnerConfig,
)

# Features other than factors explain much less of a rating than its noise: a ridge of 100. Chosen
# by benchmarks/default_learners.py on training ratings alone: of MovieLens with genres, a panel and
# reference reviewers, and of judged documents.
_OTHER_PARAMS = {"C": 0.01, "ridge": "fixed", "kernel": "linear"}
# ALS fits its factors more closely to the ratings they come from, so the ridge grows faster: the
# best on a split of the training half of MovieLens-1M (benchmarks/als_features.py … nested)
ALS_PARAMS = {**FACTOR_PARAMS, "growth": 0.02}
# the parameters of mprank if its entry has neither params nor a grid
PARAMS: dict[FeatureKind, dict[str, Any]] = {
    "factors": FACTOR_PARAMS,
    "als": ALS_PARAMS,
    "panel": _OTHER_PARAMS,
    "reference": _OTHER_PARAMS,
    "given": _OTHER_PARAMS,
    "offset": _OTHER_PARAMS,
}


def reads_letor(config: Config) -> bool:
    """Tell whether the input has queries with documents and their feature vectors."""
    return config.input.path is not None and config.input.format == "letor"


def with_fitting_defaults(config: Config, named: Mapping[str, Any]) -> Config:
    """Return the configuration with the defaults that depend on other keys.

    `named` is the tree of keys that were set: they stay.
    """
    features, train = config.features, config.train
    if "kind" not in named.get("features", {}):
        has_vectors = reads_letor(config) or features.given is not None
        features = dataclasses.replace(features, kind="given" if has_vectors else "factors")
    if "learners" not in named.get("train", {}):
        learners = [LearnerConfig("mprank", DEFAULT_LABEL)]
    else:
        learners = train.learners
    learners = [_with_params(entry, features.kind) for entry in learners]
    train = dataclasses.replace(train, learners=learners)
    return dataclasses.replace(config, features=features, train=train)


def _with_params(entry: LearnerConfig, kind: FeatureKind) -> LearnerConfig:
    if entry.learner != "mprank" or entry.params or entry.grid:
        return entry
    return dataclasses.replace(entry, params=dict(PARAMS[kind]))
