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
from spark_rank.users.joining import Asked
from spark_rank.users.learning import FAILED, LearnJob, learn_batches

NOBODY = -1  # the number of a user whom the run does not have


def check_ratings(ratings: Mapping[str, float]) -> None:
    """Raise `ConfigError` without ratings, or for one that is no finite number."""
    if not ratings:
        raise ConfigError("a new user needs one rating at least")
    for item_id, rating in ratings.items():
        if isinstance(rating, bool) or not isinstance(rating, (int, float, np.number)):
            raise ConfigError(f"the rating of {item_id!r} is no number: {rating!r}")
        if not math.isfinite(rating):
            raise ConfigError(f"the rating of {item_id!r} is not finite: {rating!r}")


def block_of(user: int, user_id: str, items: Any, ratings: Any) -> pa.RecordBatch:
    """Return a user block of which all ratings are for training."""
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


def learned(block: pa.RecordBatch, asked: Asked, job: LearnJob, features: ItemFeatures) -> pa.Table:
    """Return the user's model rows: one, and the item offset's where the learner failed."""
    (spec,) = [spec for spec in job.specs if spec.label == asked.learner]
    learn = ensemble_batches if isinstance(spec, EnsembleSpec) else learn_batches
    found = _learn(learn, block, replace(job, specs=(spec,)), features)
    offset = tuple(spec for spec in job.specs if spec.label == ITEM_OFFSET)
    if found.column("status")[0].as_py() != FAILED or not offset:
        return found
    other = _learn(learn_batches, block, replace(job, specs=offset), features)
    return pa.concat_tables([found, other], promote_options="default")


def _learn(learn: Any, block: pa.RecordBatch, job: LearnJob, features: ItemFeatures) -> pa.Table:
    return pa.Table.from_batches(list(learn(iter([block]), job, lambda files: features)))
