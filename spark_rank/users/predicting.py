"""Predicts for pairs of a user and an item, known or new."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.features.files import FeatureFiles, ItemFeatures, open_files
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import ENSEMBLE_MODELS
from spark_rank.users.batches import build_batch, ragged
from spark_rank.users.held_out import HeldOut, predictions
from spark_rank.users.learning import FAILED, FALLBACK
from spark_rank.users.newcomers import newcomer_columns
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import LearnerSpec
from spark_rank.users.stored_models import SCORING_COLUMNS

# the columns of a model that scoring needs
SCORED_BY = ("status", *SCORING_COLUMNS)
SCORED_SCHEMA = pa.schema([arrow_schema(ENSEMBLE_MODELS.columns).field(name) for name in SCORED_BY])
NEW = -1

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PairJob:
    """The settings of a worker: feature files, scale of ranks, and the model of new users.

    `newcomer` is that model as the bytes of an Arrow file with the columns `SCORED_BY`.
    """

    files: FeatureFiles
    scale: RankScale | None
    newcomer: bytes


def newcomer_model(
    features: ItemFeatures, spec: LearnerSpec, scale: RankScale | None, level: float
) -> pa.RecordBatch:
    """Return the model of a user without ratings: the prior.

    `level` is the mean of the ratings minus the scores of item offset and prior weights.
    """
    expected = features.expected_weights(np.empty(0, dtype=np.int32))
    row = {
        "status": FALLBACK,
        "on_rating_scale": spec.kind.on_rating_scale,
        **newcomer_columns(spec, scale, level, has_offset=True, expected=expected),
    }
    return build_batch([row], SCORED_SCHEMA)


def as_bytes(model: pa.RecordBatch) -> bytes:
    """Return a batch as the bytes of an Arrow file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, model.schema) as writer:
        writer.write_batch(model)
    return bytes(sink.getvalue().to_pybytes())


def pair_predictions(
    users: pa.StringArray, models: pa.RecordBatch, items: IntArray, job: PairJob, folder: str
) -> FloatArray:
    """Return the predicted rating of every pair; learners that only order items give the score.

    `models` has a row per pair, null where the user is unknown; `items` are numbers, or `NEW`.
    A new user, or one whose model failed, is scored by the newcomer's model. A new item has the
    mean features of all items and no offset.
    """
    features = open_files(job.files, folder)
    if (items == NEW).any():
        features = _with_new_item(job.files, folder)
        items = np.where(items == NEW, len(features.offset) - 1, items)
    newcomer = pa.ipc.open_file(job.newcomer).get_batch(0)
    has_model = pc.fill_null(pc.not_equal(models.column("status"), FAILED), False).to_numpy(
        zero_copy_only=False
    )
    rows, owner = _one_row_each(users, models, has_model, newcomer)
    ratings = _predicted(rows, owner, items, features, job.scale)
    missing = np.isnan(ratings)
    if missing.any():
        newcomers = np.full(int(missing.sum()), len(rows) - 1)
        ratings[missing] = _predicted(rows, newcomers, items[missing], features, job.scale)
    return ratings


def _one_row_each(
    users: pa.StringArray,
    models: pa.RecordBatch,
    has_model: NDArray[np.bool_],
    newcomer: pa.RecordBatch,
) -> tuple[pa.RecordBatch, IntArray]:
    """Return every user's model once, the newcomer's last, and the model's row for each pair."""
    encoded = users.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    codes, first, code_of_pair = np.unique(
        np.where(has_model, encoded, -1), return_index=True, return_inverse=True
    )
    is_user = codes >= 0
    rows = pa.Table.from_batches([models.take(pa.array(first[is_user])), newcomer])
    owner = code_of_pair - (len(codes) - int(is_user.sum()))
    owner[~has_model] = len(rows) - 1
    return rows.combine_chunks().to_batches()[0], owner


def _predicted(
    rows: pa.RecordBatch,
    owner: IntArray,
    items: IntArray,
    features: ItemFeatures,
    scale: RankScale | None,
) -> FloatArray:
    order = np.argsort(owner, kind="stable")
    sizes = np.bincount(owner, minlength=len(rows))
    ends = np.concatenate([[0], np.cumsum(sizes)])
    pairs = HeldOut(
        pa.array([""] * len(rows)), items[order].astype(np.int32),
        np.zeros(len(items), dtype=np.float32), ends,
    )  # fmt: skip
    ratings = np.empty(len(items))
    ratings[order] = predicted_values(rows, pairs, features, scale)
    return ratings


def predicted_values(
    models: pa.RecordBatch, pairs: HeldOut, features: ItemFeatures, scale: RankScale | None
) -> FloatArray:
    """Return the rating that every model predicts for its items, end to end.

    Learners of ranks predict the level of the rank; learners that only order items give the score.
    NaN where a model failed or a score is not finite.
    """
    predicted = predictions(models, pairs, features, scale)
    sizes = np.diff(pairs.ends)
    values = np.full(len(pairs.items), np.nan)
    scored = np.repeat(np.asarray(predicted.scores.is_valid()), sizes)
    values[scored] = ragged(predicted.scores)[0]
    if scale is not None and predicted.ranks.null_count < len(models):
        ranked = np.repeat(np.asarray(predicted.ranks.is_valid()), sizes)
        values[ranked] = scale.ratings(ragged(predicted.ranks)[0])
    return values


@lru_cache(maxsize=2)
def _with_new_item(files: FeatureFiles, folder: str) -> ItemFeatures:
    """Return the features with one more item: the mean of all items, without an offset."""
    features = open_files(files, folder)
    average = features.matrix.mean(axis=0, dtype=np.float64, keepdims=True)
    if len(features.matrix) == 0:
        average = np.zeros((1, features.matrix.shape[1]))
    return replace(
        features,
        matrix=np.vstack([features.matrix, average.astype(np.float32)]),
        offset=np.append(features.offset, 0.0),
    )
