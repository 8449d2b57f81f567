"""A new user's model, learned from a few ratings as the nightly run would learn it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from spark_rank.config.schema import ITEM_OFFSET
from spark_rank.errors import ConfigError
from spark_rank.features.files import ItemFeatures
from spark_rank.users.ensemble_learning import ensemble_batches
from spark_rank.users.ensembles import EnsembleSpec
from spark_rank.users.joining import ScoringLearner
from spark_rank.users.learning import FAILED, LearnJob, learn_batches

NOBODY = -1  # the number of a user who is not in the run


def check_ratings(ratings: Mapping[str, float]) -> None:
    """Raise `ConfigError` if there are no ratings or one is not a finite number."""
    if not ratings:
        raise ConfigError("a new user needs at least one rating")
    for item_id, rating in ratings.items():
        if isinstance(rating, bool) or not isinstance(rating, (int, float, np.number)):
            raise ConfigError(f"the rating of {item_id!r} is not a number: {rating!r}")
        if not math.isfinite(rating):
            raise ConfigError(f"the rating of {item_id!r} is not finite: {rating!r}")


def block_of(user: int, user_id: str, items: Any, ratings: Any) -> pa.RecordBatch:
    """Return a user block whose ratings are all in the training part."""
    ends = pa.array([0, len(items)], pa.int32())
    columns = {
        "user": pa.array([user], pa.int32()),
        "user_id": pa.array([user_id]),
        "items": pa.ListArray.from_arrays(ends, pa.array(items, pa.int32())),
        "ratings": pa.ListArray.from_arrays(ends, pa.array(ratings, pa.float32())),
        "n_train": pa.array([len(items)], pa.int32()),
        "bucket": pa.array([None], pa.int32()),
    }
    return pa.RecordBatch.from_pydict(columns)


def learned(
    block: pa.RecordBatch, scored_by: ScoringLearner, job: LearnJob, features: ItemFeatures
) -> pa.Table:
    """Return the user's model row, and that of the item offset if the learner failed."""
    (spec,) = [spec for spec in job.specs if spec.label == scored_by.learner]
    learn = ensemble_batches if isinstance(spec, EnsembleSpec) else learn_batches
    models = _learn(learn, block, replace(job, specs=(spec,)), features)
    fallback = tuple(spec for spec in job.specs if spec.label == ITEM_OFFSET)
    if models.column("status")[0].as_py() != FAILED or not fallback:
        return models
    fallback_models = _learn(learn_batches, block, replace(job, specs=fallback), features)
    return pa.concat_tables([models, fallback_models], promote_options="default")


def _learn(learn: Any, block: pa.RecordBatch, job: LearnJob, features: ItemFeatures) -> pa.Table:
    return pa.Table.from_batches(list(learn(iter([block]), job, lambda files: features)))
